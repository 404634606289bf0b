#include <objc/objc.h>
Class objc_getClass(const char *name);
SEL sel_registerName(const char *name);
