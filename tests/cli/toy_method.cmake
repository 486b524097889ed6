# Every verb that takes a method takes one that only its own file knows, with a parameter that only that
# file knows.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})

# must(PATTERN ARGUMENTS...): the command succeeds and prints the pattern.
function(must pattern)
  execute_process(COMMAND ${COMMAND} ${ARGN} WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE status
                  OUTPUT_VARIABLE out ERROR_VARIABLE err)
  list(JOIN ARGN " " line)
  if(NOT status EQUAL 0 OR NOT "${out}${err}" MATCHES "${pattern}")
    message(FATAL_ERROR "mrrope ${line}: exit ${status}, no match of '${pattern}' in\n${out}${err}")
  endif()
endfunction()

# must_refuse(PATTERN ARGUMENTS...): the command fails as a usage error and prints the pattern.
function(must_refuse pattern)
  execute_process(COMMAND ${COMMAND} ${ARGN} RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE err)
  if(NOT status EQUAL 2 OR NOT err MATCHES "${pattern}")
    message(FATAL_ERROR "exit ${status}, no match of '${pattern}' in\n${err}")
  endif()
endfunction()

set(geometry --rotary-dim 8 --rope-freq-base 10000 --train-ctx 4096)
must("custom, toy" plan --help)
must("custom toy" --generate bash)
must("\"factor\": [[][^]]*4.0" plan ${geometry} --method toy --scale 2 --json)
must("wrote static.json" plan ${MODEL} --method Toy --ctx 2k -o static.json)
must("\"method\": \"toy\"" plan --plan static.json --json)
must("wrote ladder.json" plan ${MODEL} --method elastic:toy --ctx 2k -o ladder.json)
must("\"method\": \"elastic:toy\"" plan --plan ladder.json --json)
must("toy" theory factors llama2 --methods pro,toy --scale 4)
must("." generate ${MODEL} --plan ladder.json --ctx 2k -p Hello -n 4 --temp 0 -v)
must("toy" eval ppl ${MODEL} --methods none,toy,elastic:toy --lengths 256,2k --samples 1 --kl-positions 0 -o run)
must("toy" report run)
must("long.gguf" export ${MODEL} --method toy --ctx 2k -o long.gguf)

must_refuse("did you mean toy[?]" plan ${geometry} --method tyo --scale 2)

# The parameter: as a flag, in the notation, in a list of methods, in a plan file.
must("\"factor\": [[][^]]*8.0" plan ${geometry} --method toy --toy-exponent 3 --scale 2 --json)
must("\"factor\": [[][^]]*8.0" plan ${geometry} --method "toy(toy_exponent=3)" --scale 2 --json)
must("toy.toy_exponent=3" theory factors llama2 --methods "toy(toy_exponent=2..3)" --scale 4)
must("wrote own.json" plan ${MODEL} --method "elastic:toy(toy_exponent=3)" --ctx 2k -o own.json)
must("\"toy_exponent\": 3" plan --plan own.json --json)
must_refuse("pro does not use toy_exponent" plan ${geometry} --method pro --toy-exponent 3 --scale 2)
must_refuse("toy_exponent 9 is not a number from 1 to 8" plan ${geometry} --method "toy(toy_exponent=9)" --scale 2)
must_refuse("did you mean toy_exponent[?]" plan ${geometry} --method "toy(toy_exponet=2)" --scale 2)
