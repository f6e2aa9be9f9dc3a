/* postgres_scripts.h - what is made on the server, statement by statement. Every statement may be
 * run again. '@' is the schema of the context. Changed texts need a new version and new names of
 * functions: nodes of two releases use one server. */
#ifndef GL_STORE_POSTGRES_SCRIPTS_H
#define GL_STORE_POSTGRES_SCRIPTS_H

extern const char *const gl_postgres_script_store[];   /* ends with NULL */
extern const char *const gl_postgres_script_context[]; /* ends with NULL */

#endif
