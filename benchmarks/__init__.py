"""The paper's tables and the questions of the lab notebook, measured again: `python -m benchmarks` lists the commands.

Run from the top of the repository; not a part of the installed package. Results lie in benchmarks/results.
"""

from insnet.threads import spin_briefly

spin_briefly()  # as the command line does, before anything imports torch
