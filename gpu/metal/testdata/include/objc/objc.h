// What encode.c uses of the Objective-C runtime, declared as Apple's headers declare it, for machines without them.
#ifndef STANDIN_OBJC_H
#define STANDIN_OBJC_H
#include <stdbool.h>
typedef struct objc_class *Class;
struct objc_object {
  Class isa;
};
typedef struct objc_object *id;
typedef struct objc_selector *SEL;
typedef bool BOOL;
#endif
