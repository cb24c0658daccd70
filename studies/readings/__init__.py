"""Which reading of the paper's text makes its table?"""
