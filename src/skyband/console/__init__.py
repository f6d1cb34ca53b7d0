"""What a person sees on a command line; `skyband.cli` has the commands.

demo.py, screen.py        the demo in one process, and where it is shown
jobs.py, job_screen.py    jobs on Spark: the plan, the stream, the live table
"""
