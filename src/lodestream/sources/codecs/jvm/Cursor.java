package lodestream.codecs;

import java.nio.charset.StandardCharsets;

/** A place in JSON bytes, and the tokens that start there. Every byte passed over is checked against the grammar. */
class Cursor {
    private static final double[] POWERS = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
        1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    private static final long EXACT = 1L << 53;
    /** From here on one more digit might not fit into a long. */
    static final long FULL = 100000000000000000L;

    final byte[] text;
    final int end;
    final int mostItems;
    final int mostDepth;
    int at;
    private int items;
    private int depth;

    /** The last string or number: its bytes, without the quotes. */
    int from;
    int to;
    boolean escaped;
    boolean loneSurrogate;
    boolean negative;
    boolean whole;
    boolean complete;
    long digits;
    int exponent;

    Cursor(byte[] text, int mostItems, int mostDepth) {
        this.text = text;
        this.end = text.length;
        this.mostItems = mostItems;
        this.mostDepth = mostDepth;
    }

    final Broken malformed() {
        return new Broken("malformed at byte " + Math.min(at, end));
    }

    final int peek() {
        if (at >= end) {
            return -1;
        }
        return text[at];
    }

    final void white() {
        while (at < end) {
            byte found = text[at];
            if (found != ' ' && found != '\n' && found != '\t' && found != '\r') {
                return;
            }
            at++;
        }
    }

    final void take(int wanted) {
        if (at >= end || text[at] != wanted) {
            throw malformed();
        }
        at++;
    }

    final void open() {
        at++;
        item();
        if (++depth > mostDepth) {
            throw new Broken("nested deeper than " + mostDepth);
        }
        white();
    }

    final void close() {
        at++;
        depth--;
    }

    /** After a member: true when a comma promises another one, false when the bracket closes. */
    final boolean more(int bracket) {
        white();
        int found = peek();
        if (found == bracket) {
            close();
            return false;
        }
        take(',');
        item();
        white();
        return true;
    }

    private void item() {
        if (++items > mostItems) {
            throw new Broken("more than " + String.format(java.util.Locale.ROOT, "%,d", new Object[] {mostItems}) + " items");
        }
    }

    final void word(String wanted) {
        for (int i = 0; i < wanted.length(); i++) {
            if (at + i >= end || text[at + i] != wanted.charAt(i)) {
                throw malformed();
            }
        }
        at += wanted.length();
    }

    final void string() {
        take('"');
        from = at;
        escaped = false;
        int i = at;
        while (i < end && text[i] != '"') {
            byte found = text[i];
            if (found == '\\') {
                at = i;
                escape();
                i = at;
            } else if (found >= 0 && found < 0x20) {
                at = i;
                throw malformed();
            } else {
                i++;
            }
        }
        at = i;
        to = i;
        take('"');
    }

    /** Passes over a quoted name that is exactly this one; stays where it is otherwise. */
    final boolean quoted(byte[] name) {
        int last = at + 1 + name.length;
        if (last >= end || text[at] != '"' || text[last] != '"') {
            return false;
        }
        for (int i = 0; i < name.length; i++) {
            if (text[at + 1 + i] != name[i]) {
                return false;
            }
        }
        at = last + 1;
        return true;
    }

    private void escape() {
        escaped = true;
        at++;
        int found = peek();
        if (found == 'u') {
            for (int i = 1; i <= 4; i++) {
                if (at + i >= end || Escapes.hex(text[at + i]) < 0) {
                    throw malformed();
                }
            }
            at += 5;
        } else if (found < 0 || "\"\\/bfnrt".indexOf(found) < 0) {
            throw malformed();
        } else {
            at++;
        }
    }

    /** The last string as UTF-8; a surrogate without its partner becomes "?" and is remembered. */
    final byte[] unescaped() {
        loneSurrogate = false;
        if (!escaped) {
            return java.util.Arrays.copyOfRange(text, from, to);
        }
        Escapes escapes = new Escapes(text, from, to);
        byte[] found = escapes.resolved();
        loneSurrogate = escapes.loneSurrogate;
        return found;
    }

    final void number() {
        from = at;
        digits = 0;
        exponent = 0;
        whole = true;
        complete = true;
        negative = peek() == '-';
        if (negative) {
            at++;
        }
        if (peek() == '0') {
            at++;
        } else {
            run(0);
        }
        if (peek() == '.') {
            whole = false;
            at++;
            run(1);
        }
        if (peek() == 'e' || peek() == 'E') {
            whole = false;
            at++;
            power();
        }
        to = at;
    }

    /** One or more digits into `digits`, as long as they fit. */
    private void run(int places) {
        int i = at;
        long sum = digits;
        int held = 0;
        while (i < end && text[i] >= '0' && text[i] <= '9') {
            if (sum < FULL) {
                sum = sum * 10 + (text[i] - '0');
                held++;
            }
            i++;
        }
        if (i == at) {
            throw malformed();
        }
        complete = complete && held == i - at;
        exponent -= places * held;
        digits = sum;
        at = i;
    }

    private void power() {
        boolean down = peek() == '-';
        if (down || peek() == '+') {
            at++;
        }
        int first = at;
        int power = 0;
        while (at < end && text[at] >= '0' && text[at] <= '9') {
            power = Math.min(power * 10 + (text[at] - '0'), 100000000);
            at++;
        }
        if (at == first) {
            throw malformed();
        }
        exponent += down ? -power : power;
    }

    /** The last number as the nearest double: by one exact operation where both parts are exact, else the long way. */
    final double real() {
        if (complete && digits < EXACT && exponent >= -22 && exponent <= 22) {
            double size = exponent < 0 ? digits / POWERS[-exponent] : digits * POWERS[exponent];
            return negative && !(whole && digits == 0) ? -size : size;
        }
        return Double.parseDouble(ascii());
    }

    final String ascii() {
        return new String(text, from, to - from, StandardCharsets.ISO_8859_1);
    }

    /** Passes over any value. */
    final void skip() {
        switch (peek()) {
            case '"': string(); return;
            case '{': skipObject(); return;
            case '[': skipArray(); return;
            case 't': word("true"); return;
            case 'f': word("false"); return;
            case 'n': word("null"); return;
            case 'N': word("NaN"); return;
            case 'I': word("Infinity"); return;
            case '-':
                if (at + 1 < end && text[at + 1] == 'I') {
                    word("-Infinity");
                    return;
                }
                number();
                return;
            default: number();
        }
    }

    private void skipObject() {
        open();
        if (peek() == '}') {
            close();
            return;
        }
        do {
            string();
            white();
            take(':');
            white();
            skip();
        } while (more('}'));
    }

    private void skipArray() {
        open();
        if (peek() == ']') {
            close();
            return;
        }
        do {
            skip();
        } while (more(']'));
    }
}
