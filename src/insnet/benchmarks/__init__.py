"""What `insnet benchmark` measures: ratios of step times within one run, never seconds of one machine."""
