/* A shared object that is no module. */
int something_else(void);

int something_else(void)
{
    return 1;
}
