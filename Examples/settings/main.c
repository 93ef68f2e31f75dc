/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A player that keeps its settings: how loud it was, and what it has played. Two windows may be open at once.
 *
 *   settings                 plays a little, with the settings of the last time, and keeps the new ones
 *   settings -volume 3       the same, but as loud as this time's argument says; that is not kept
 *
 * Settings change often, files should not. So a change sets a timer, and when nothing has changed for a moment, or at the end, what has
 * changed is written: only that, over what the other window has written meanwhile.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <stdio.h>

#define APPLICATION kCFPreferencesCurrentApplication /* "settings": the bundle's identifier, or the name of the program */

enum { songs = 3, loudest = 10 };

static CFRunLoopTimerRef save_timer;
static bool is_saved = true;

static void save(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    if (!is_saved) {
        is_saved = CFPreferencesAppSynchronize(APPLICATION); /* says why not, and tries again at the next change */
    }
}

static void set_setting(CFStringRef key, CFPropertyListRef value)
{
    CFPreferencesSetAppValue(key, value, APPLICATION);
    is_saved = false;
    CFRunLoopTimerSetNextFireDate(save_timer, CFAbsoluteTimeGetCurrent() + 0.2);
}

static void set_integer(CFStringRef key, CFIndex integer)
{
    CFNumberRef number = CFNumberCreate(NULL, kCFNumberCFIndexType, &integer);

    set_setting(key, number);
    CFRelease(number);
}

static CFIndex volume(void)
{
    Boolean is_there;
    CFIndex volume = CFPreferencesGetAppIntegerValue(CFSTR("volume"), APPLICATION, &is_there);

    return is_there && volume >= 0 && volume <= loudest ? volume : loudest / 2; /* people edit files */
}

static void play(CFRunLoopTimerRef timer, void *info)
{
    int *song = info;
    CFIndex played = CFPreferencesGetAppIntegerValue(CFSTR("played"), APPLICATION, NULL);

    (void)timer;
    printf("song %ld at volume %ld\n", (long)played + 1, (long)volume());
    set_integer(CFSTR("played"), played + 1);
    set_integer(CFSTR("volume"), volume() < loudest ? volume() + 1 : 0);
    if (++*song == songs) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

int main(int argc, char **argv)
{
    int song = 0;
    CFRunLoopTimerContext context = {.info = &song};
    CFRunLoopTimerRef player = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.05, 0, 0, play, &context);
    CFIndex before = CFPreferencesGetAppIntegerValue(CFSTR("played"), APPLICATION, NULL);

    save_timer = CFRunLoopTimerCreate(NULL, 1e10, 1e10, 0, 0, save, NULL); /* repeats, and so can be set again */
    if (argc > 1) {
        CRLPreferencesSetArguments(argc, argv);
    }
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), save_timer, kCFRunLoopCommonModes);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), player, kCFRunLoopDefaultMode);
    CFRunLoopRun();
    save(NULL, NULL);

    CFRunLoopTimerInvalidate(player);
    CFRunLoopTimerInvalidate(save_timer);
    CFRelease(player);
    CFRelease(save_timer);
    return is_saved && CFPreferencesGetAppIntegerValue(CFSTR("played"), APPLICATION, NULL) == before + songs ? 0 : 1;
}
