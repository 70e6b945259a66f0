"""Make goals and lists of stages: make, calibrate, show, stages."""
