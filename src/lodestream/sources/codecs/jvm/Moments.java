package lodestream.codecs;

/** ISO 8601 dates and times in ASCII bytes. A wall time and an instant are different things. */
final class Moments {
    static final long NONE = Long.MIN_VALUE;
    static final long ZONED = NONE + 1;
    static final long UNZONED = NONE + 2;
    private static final long DAY = 86400000000L;
    private static final long FIRST = -719162L * DAY;
    private static final long LAST = 2932897L * DAY;

    private final byte[] text;
    private final int end;
    private int at;

    private Moments(byte[] text, int from, int to) {
        this.text = text;
        this.at = from;
        this.end = to;
    }

    /** Days since 1970, or NONE. */
    static long day(byte[] text, int from, int to) {
        Moments moment = new Moments(text, from, to);
        long day = moment.day();
        return moment.at == to ? day : NONE;
    }

    /** Microseconds since 1970; NONE for no such time, ZONED or UNZONED where the other kind was wanted. */
    static long moment(byte[] text, int from, int to, boolean zoneWanted) {
        return new Moments(text, from, to).moment(zoneWanted);
    }

    private long moment(boolean zoneWanted) {
        long day = day();
        if (day == NONE || !(next('T') || next(' '))) {
            return NONE;
        }
        long clock = clock();
        if (clock == NONE) {
            return NONE;
        }
        if (at == end) {
            return zoneWanted ? UNZONED : day * DAY + clock;
        }
        long offset = offset();
        if (offset == NONE || at != end) {
            return NONE;
        }
        if (!zoneWanted) {
            return ZONED;
        }
        long found = day * DAY + clock - offset;
        return found >= FIRST && found < LAST ? found : NONE;
    }

    private long day() {
        int year = number(4);
        if (!next('-')) {
            return NONE;
        }
        int month = number(2);
        if (!next('-')) {
            return NONE;
        }
        int day = number(2);
        if (year < 1 || month < 1 || month > 12 || day < 1 || day > lengthOf(month, year)) {
            return NONE;
        }
        return daysBefore(year, month) + day - 1;
    }

    private static int lengthOf(int month, int year) {
        if (month == 2) {
            return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
        }
        return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
    }

    /** Days from 1970-01-01 to the first of the month, counting years from March so that leap days come last. */
    private static long daysBefore(int year, int month) {
        int shifted = month <= 2 ? year - 1 : year;
        int era = shifted / 400;
        int inEra = shifted - era * 400;
        int inYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5;
        return era * 146097L + inEra * 365L + inEra / 4 - inEra / 100 + inYear - 719468L;
    }

    private long clock() {
        int hour = number(2);
        if (!next(':')) {
            return NONE;
        }
        int minute = number(2);
        int second = 0;
        long micros = 0;
        if (next(':')) {
            second = number(2);
            if (next('.') || next(',')) {
                micros = fraction();
            }
        }
        boolean real = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60 && micros >= 0;
        return real ? ((hour * 60L + minute) * 60L + second) * 1000000L + micros : NONE;
    }

    /** Up to six places; those after must be zeros, because a timestamp would drop them. */
    private long fraction() {
        long micros = 0;
        int places = 0;
        while (at < end && text[at] >= '0' && text[at] <= '9') {
            if (places < 6) {
                micros = micros * 10 + (text[at] - '0');
            } else if (text[at] != '0') {
                return NONE;
            }
            places++;
            at++;
        }
        for (int i = places; i < 6; i++) {
            micros *= 10;
        }
        return places == 0 ? NONE : micros;
    }

    private long offset() {
        next(' ');
        if (next('Z')) {
            return 0;
        }
        boolean east = next('+');
        if (!east && !next('-')) {
            return NONE;
        }
        int minutes = number(2) * 60;
        if (at < end) {
            next(':');
            int rest = number(2);
            if (rest < 0 || rest > 59) {
                return NONE;
            }
            minutes += rest;
        }
        if (minutes < 0 || minutes > 18 * 60) {
            return NONE;
        }
        return (east ? minutes : -minutes) * 60000000L;
    }

    private boolean next(int wanted) {
        if (at < end && text[at] == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private int number(int width) {
        int found = 0;
        for (int i = 0; i < width; i++) {
            if (at >= end || text[at] < '0' || text[at] > '9') {
                return -100000;
            }
            found = found * 10 + (text[at++] - '0');
        }
        return found;
    }
}
