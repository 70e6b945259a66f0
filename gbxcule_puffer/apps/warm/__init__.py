"""`puffer warm`: the kernels that most commands need, compiled before they are needed."""
