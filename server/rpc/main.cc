// fusion-server.
#include "server/rpc/server_program.h"

int main(int argc, char** argv) { return fusion::RunServerProgram(argc, argv); }
