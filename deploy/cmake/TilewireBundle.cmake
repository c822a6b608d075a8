# The `bundle` target: a relocatable folder with programs and the shared libraries they need.
