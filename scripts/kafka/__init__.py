"""A single-node Kafka broker for tests and trials, and Spark's connector to it: `./run kafka start | stop | jars`.

artifacts.py   jars from the Maven registry this machine is set up for, kept in a folder
broker.py      the broker's process: started, asked whether it answers, stopped
__main__.py    the commands
"""
