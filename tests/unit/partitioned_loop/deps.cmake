set(DEPS Threads::Threads)
