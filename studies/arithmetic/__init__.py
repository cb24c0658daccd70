"""Does the fast arithmetic on a GPU learn the same values as float32?"""
