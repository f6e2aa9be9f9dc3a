/* port.h - ports of the loopback for private servers, each given to one test of this machine. */
#ifndef GL_TEST_PORT_H
#define GL_TEST_PORT_H

#include <stdint.h>

/* A port nobody listens at. It is this process's until it ends: no other test of this machine is
 * given it (test/lib/ports.py knows the same mark), and the system gives it to no outgoing
 * connection, so a server that is restarted finds it free again. */
uint16_t test_port(void);

#endif
