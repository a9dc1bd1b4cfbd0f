package lodestream.codecs;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** JSON's escapes in a string whose grammar has been checked. */
final class Escapes {
    boolean loneSurrogate;
    private final byte[] text;
    private final int from;
    private final int to;

    Escapes(byte[] text, int from, int to) {
        this.text = text;
        this.from = from;
        this.to = to;
    }

    byte[] resolved() {
        ByteArrayOutputStream out = new ByteArrayOutputStream(to - from);
        int i = from;
        while (i < to) {
            if (text[i] != '\\') {
                out.write(text[i++]);
            } else if (text[i + 1] != 'u') {
                out.write(meant(text[i + 1]));
                i += 2;
            } else {
                int unit = unit(i);
                i += 6;
                int low = Character.isHighSurrogate((char) unit) && i + 1 < to && text[i] == '\\' && text[i + 1] == 'u' ? unit(i) : 0;
                if (Character.isLowSurrogate((char) low)) {
                    unit = Character.toCodePoint((char) unit, (char) low);
                    i += 6;
                } else if (Character.isSurrogate((char) unit)) {
                    loneSurrogate = true;
                    unit = '?';
                }
                byte[] letter = new String(Character.toChars(unit)).getBytes(StandardCharsets.UTF_8);
                out.write(letter, 0, letter.length);
            }
        }
        return out.toByteArray();
    }

    private static int meant(int letter) {
        switch (letter) {
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            default: return letter;
        }
    }

    private int unit(int i) {
        return hex(text[i + 2]) << 12 | hex(text[i + 3]) << 8 | hex(text[i + 4]) << 4 | hex(text[i + 5]);
    }

    static int hex(int letter) {
        return letter > 127 || letter < 0 ? -1 : Character.digit((char) letter, 16);
    }
}
