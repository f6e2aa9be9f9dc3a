/* postgres_scripts.h - the SQL that creates the store on the server, statement by statement. Every
 * statement can be run again. '@' is the schema of the context. A changed function needs a new
 * version and a new name, because nodes of two releases may use one server. */
#ifndef GL_STORE_POSTGRES_SCRIPTS_H
#define GL_STORE_POSTGRES_SCRIPTS_H

extern const char *const gl_postgres_script_store[];   /* ends with NULL */
extern const char *const gl_postgres_script_context[]; /* ends with NULL */

#endif
