/* slots_parts.h - what the files of the slots share. Private to slots*.c. */
#ifndef GL_CORE_SCHEDULING_SLOTS_PARTS_H
#define GL_CORE_SCHEDULING_SLOTS_PARTS_H

#include "core/scheduling/slots.h"

struct gl_quota_group;

int gl_slots_find_pool(const struct gl_core *c, gl_str name); /* -1: unknown */
void gl_slots_make_key(char key[static GL_WAIT_KEY_BYTES], gl_str job, uint32_t number);
gl_str gl_slots_key_of(const struct gl_wait *w);
/* An entry in no queue and no map yet. */
struct gl_wait *gl_slots_wait_new(struct gl_core *c, struct gl_quota_group *group);
struct gl_offered_wait *gl_slots_offered_new(struct gl_core *c);
/* Takes the entry out of its queue, its group and the map. The slots of a grant are the caller's.
 */
void gl_slots_wait_free(struct gl_core *c, struct gl_wait *w);
/* Is it the entry of an agent that waits for an immediate retry and keeps its lease? */
bool gl_slots_has_already(const struct gl_wait *w);
/* The head of a queue. Heads that a limit holds back are moved out of the way first. */
struct gl_wait *gl_slots_head_of(struct gl_core *c, struct gl_heap *queue);
/* Connects a hold with the step; does not count its slots as in use. */
struct gl_slot_hold *gl_slots_hold_new(struct gl_core *c, struct gl_step *st, int pool);
/* Offers steps that cannot start here to other nodes with free slots. */
void gl_slots_place_elsewhere(struct gl_core *c);

#endif
