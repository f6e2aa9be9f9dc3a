/* times.c - see times.h. The calendar is computed here: the C library's functions read the
 * environment. */
#include "base/times.h"

#include <stdio.h>

#include "base/check.h"

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    DAY_MS = 24 * HOUR_MS,
};

#define SPAN_MS_MAX ((gl_ms)3650 * DAY_MS)
#define TIME_MS_MAX ((gl_ms)253402300799999) /* 9999-12-31T23:59:59.999Z */

struct date {
    int64_t year;
    unsigned month, day;
};

/* Days since 1970-01-01 and back, in the proleptic Gregorian calendar. Years begin in March, so
 * that the leap day is the last one, and are grouped in eras of 400 years. */
static int64_t days_of(struct date d)
{
    int64_t y = d.month <= 2 ? d.year - 1 : d.year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (int64_t)(d.month + (d.month > 2 ? 0 : 12) - 3) + 2) / 5 + d.day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct date date_of(int64_t days)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;
    struct date d = {.day = (unsigned)(of_year - (153 * m + 2) / 5 + 1)};
    d.month = (unsigned)(m < 10 ? m + 3 : m - 9);
    d.year = y + era * 400 + (d.month <= 2 ? 1 : 0);
    return d;
}

static void put_digits(char *at, unsigned width, int64_t v)
{
    while (width-- > 0) {
        at[width] = (char)('0' + v % 10);
        v /= 10;
    }
}

gl_str gl_times_format(gl_ms t, char buf[static GL_TIMES_BYTES])
{
    t = t < 0 ? 0 : t > TIME_MS_MAX ? TIME_MS_MAX : t;
    struct date d = date_of(t / DAY_MS);
    int64_t ms = t % DAY_MS;
    memcpy(buf, "0000-00-00T00:00:00.000Z", GL_TIMES_BYTES);
    put_digits(buf, 4, d.year);
    put_digits(buf + 5, 2, d.month);
    put_digits(buf + 8, 2, d.day);
    put_digits(buf + 11, 2, ms / HOUR_MS);
    put_digits(buf + 14, 2, ms / MINUTE_MS % 60);
    put_digits(buf + 17, 2, ms / SECOND_MS % 60);
    put_digits(buf + 20, 3, ms % SECOND_MS);
    return (gl_str){.p = buf, .n = GL_TIMES_BYTES - 1};
}

/* Consume `width` digits from the front of *s. */
static bool eat_digits(gl_str *s, unsigned width, unsigned *ret)
{
    uint64_t v;
    if (s->n < width || !gl_str_u64((gl_str){s->p, width}, &v)) {
        return false;
    }
    *ret = (unsigned)v;
    s->p += width;
    s->n -= width;
    return true;
}

static bool eat_any(gl_str *s, const char *set, char *ret)
{
    if (s->n == 0 || !s->p[0] || !strchr(set, s->p[0])) {
        return false;
    }
    *ret = s->p[0];
    s->p++;
    s->n--;
    return true;
}

static bool eat_date(gl_str *s, struct date *ret)
{
    char c;
    unsigned year, month, day;
    if (!eat_digits(s, 4, &year) || !eat_any(s, "-", &c) || !eat_digits(s, 2, &month) ||
        !eat_any(s, "-", &c) || !eat_digits(s, 2, &day)) {
        return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > 31) {
        return false;
    }
    *ret = (struct date){.year = year, .month = month, .day = day};
    struct date same = date_of(days_of(*ret)); /* February 30 comes back as another day */
    return same.month == month && same.day == day;
}

static bool eat_clock(gl_str *s, gl_ms *ret)
{
    char c;
    unsigned hour, minute, second;
    if (!eat_digits(s, 2, &hour) || !eat_any(s, ":", &c) || !eat_digits(s, 2, &minute) ||
        !eat_any(s, ":", &c) || !eat_digits(s, 2, &second)) {
        return false;
    }
    if (hour > 23 || minute > 59 || second > 60) { /* 60: a leap second */
        return false;
    }
    *ret = (gl_ms)hour * HOUR_MS + (gl_ms)minute * MINUTE_MS + (gl_ms)second * SECOND_MS;
    if (!eat_any(s, ".", &c)) {
        return true;
    }
    unsigned digit, scale = 100;
    if (s->n == 0 || s->p[0] < '0' || s->p[0] > '9') {
        return false;
    }
    while (eat_digits(s, 1, &digit)) { /* digits beyond milliseconds are dropped */
        *ret += digit * scale;
        scale /= 10;
    }
    return true;
}

static bool eat_offset(gl_str *s, gl_ms *ret)
{
    char c;
    *ret = 0;
    if (eat_any(s, "Zz", &c)) {
        return true;
    }
    char sign;
    unsigned hours, minutes;
    if (!eat_any(s, "+-", &sign) || !eat_digits(s, 2, &hours) || !eat_any(s, ":", &c) ||
        !eat_digits(s, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret = (gl_ms)hours * HOUR_MS + (gl_ms)minutes * MINUTE_MS;
    *ret = sign == '-' ? -*ret : *ret;
    return true;
}

bool gl_times_parse(gl_str s, gl_ms *ret)
{
    struct date date;
    gl_ms clock, offset;
    char c;
    if (!eat_date(&s, &date) || !eat_any(&s, "Tt ", &c) || !eat_clock(&s, &clock) ||
        !eat_offset(&s, &offset) || s.n) {
        return false;
    }
    *ret = days_of(date) * DAY_MS + clock - offset;
    return true;
}

/* Spans. */

static const struct unit {
    const char *name;
    gl_ms ms;
} units[] = {{"d", DAY_MS}, {"h", HOUR_MS}, {"m", MINUTE_MS}, {"s", SECOND_MS}, {"ms", 1}};

/* The number before a unit; the fraction is kept in billionths, to avoid rounding. */
struct amount {
    uint64_t whole, billionths;
};

static bool eat_amount(gl_str *s, struct amount *ret)
{
    size_t n = 0;
    while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9') {
        n++;
    }
    if (!gl_str_u64((gl_str){s->p, n}, &ret->whole)) {
        return false;
    }
    s->p += n;
    s->n -= n;
    ret->billionths = 0;
    char c;
    if (!eat_any(s, ".", &c)) {
        return true;
    }
    unsigned digit;
    uint64_t scale = 100000000;
    if (s->n == 0 || s->p[0] < '0' || s->p[0] > '9') {
        return false;
    }
    while (eat_digits(s, 1, &digit)) {
        ret->billionths += digit * scale;
        scale /= 10;
    }
    return true;
}

/* Consume the unit at the front of *s and return its index. An empty rest means seconds if `bare`
 * is allowed. */
static int eat_unit(gl_str *s, bool bare)
{
    size_t n = 0;
    while (n < s->n && s->p[n] >= 'a' && s->p[n] <= 'z') {
        n++;
    }
    gl_str word = {s->p, n};
    if (n == 0 && bare && s->n == 0) {
        word = GL_S("s");
    }
    for (unsigned i = 0; i < GL_COUNT(units); i++) {
        if (gl_str_is(word, units[i].name)) {
            s->p += n;
            s->n -= n;
            return (int)i;
        }
    }
    return -1;
}

bool gl_times_parse_span(gl_str s, gl_ms *ret)
{
    gl_ms total = 0;
    int last = -1;
    s = gl_str_trim(s);
    do {
        struct amount amount;
        if (!eat_amount(&s, &amount)) {
            return false;
        }
        int unit = eat_unit(&s, last < 0);
        if (unit <= last) { /* also catches -1: units must descend, each at most once */
            return false;
        }
        last = unit;
        gl_ms ms = units[unit].ms;
        if (amount.whole > (uint64_t)(SPAN_MS_MAX / ms)) {
            return false;
        }
        total += (gl_ms)amount.whole * ms + (gl_ms)(amount.billionths * (uint64_t)ms / 1000000000);
        s = gl_str_trim(s);
    } while (s.n);
    if (total > SPAN_MS_MAX) {
        return false;
    }
    *ret = total;
    return true;
}

gl_str gl_times_format_span(gl_ms span, char buf[static GL_TIMES_BYTES])
{
    const char *sign = span < 0 ? "-" : "";
    uint64_t ms = span < 0 ? 0 - (uint64_t)span : (uint64_t)span;
    uint64_t s = ms / SECOND_MS, m = ms / MINUTE_MS, h = ms / HOUR_MS, d = ms / DAY_MS;
    int n;
    if (ms < SECOND_MS) {
        n = snprintf(buf, GL_TIMES_BYTES, "%s%ums", sign, (unsigned)ms);
    } else if (m == 0 && ms % SECOND_MS >= 100) {
        n = snprintf(buf, GL_TIMES_BYTES, "%s%u.%us", sign, (unsigned)s,
                     (unsigned)(ms % 1000 / 100));
    } else if (m == 0) {
        n = snprintf(buf, GL_TIMES_BYTES, "%s%us", sign, (unsigned)s);
    } else if (h == 0) {
        n = snprintf(buf, GL_TIMES_BYTES, "%s%um %us", sign, (unsigned)m, (unsigned)(s % 60));
    } else if (d == 0) {
        n = snprintf(buf, GL_TIMES_BYTES, "%s%uh %um", sign, (unsigned)h, (unsigned)(m % 60));
    } else {
        n = snprintf(buf, GL_TIMES_BYTES, "%s%llud %uh", sign, (unsigned long long)d,
                     (unsigned)(h % 24));
    }
    GL_ASSERT(n > 0 && n < GL_TIMES_BYTES);
    return (gl_str){.p = buf, .n = (size_t)n};
}
