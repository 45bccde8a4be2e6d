set(DEPS "")
