from hooked import train as train
