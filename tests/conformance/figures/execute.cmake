# One notebook at reduced size, from nothing. NAME, PYTHON, SOURCE, PROGRAM, OUTPUT are given.
file(REMOVE_RECURSE ${OUTPUT})
execute_process(
  COMMAND ${PYTHON} ${SOURCE}/scripts/make_figures.py --program ${PROGRAM} --notebook ${NAME}
    --reduced --threads 1 --output ${OUTPUT}
  RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${NAME}: exit code ${code}")
endif()
file(GLOB figures ${OUTPUT}/*.pdf ${OUTPUT}/*.svg)
if(NOT figures)
  message(FATAL_ERROR "${NAME} saved no figure")
endif()
