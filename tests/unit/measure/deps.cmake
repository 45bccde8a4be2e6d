set(DEPS fusion_measure fusion_runner_program ${CMAKE_DL_LIBS})
# How many places of an entry are tried follows from how long a run takes.
set(SERIAL_TESTS VerificationTest.AnIndexThatIsOffByAFewIsCaught)
