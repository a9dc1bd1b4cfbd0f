package lodestream.codecs;

import org.apache.spark.unsafe.Platform;

/** Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
final class Utf8 {
    private static final long HIGH_BITS = 0x8080808080808080L;

    private Utf8() {
    }

    /** Where the first sequence that is not UTF-8 starts, or -1. */
    static int firstInvalid(byte[] text) {
        int i = 0;
        while (i < text.length) {
            if (i + 8 <= text.length && (Platform.getLong(text, Platform.BYTE_ARRAY_OFFSET + i) & HIGH_BITS) == 0) {
                i += 8;
                continue;
            }
            if (text[i] >= 0) {
                i++;
                continue;
            }
            int length = sequence(text, i);
            if (length == 0) {
                return i;
            }
            i += length;
        }
        return -1;
    }

    private static int sequence(byte[] text, int i) {
        int first = text[i] & 0xff;
        int second = i + 1 < text.length ? text[i + 1] & 0xff : 0;
        if (first >= 0xc2 && first <= 0xdf) {
            return tail(text, i, 2);
        }
        if (first >= 0xe0 && first <= 0xef) {
            boolean overlong = first == 0xe0 && second < 0xa0;
            boolean surrogate = first == 0xed && second > 0x9f;
            return overlong || surrogate ? 0 : tail(text, i, 3);
        }
        if (first >= 0xf0 && first <= 0xf4) {
            boolean overlong = first == 0xf0 && second < 0x90;
            boolean beyond = first == 0xf4 && second > 0x8f;
            return overlong || beyond ? 0 : tail(text, i, 4);
        }
        return 0;
    }

    private static int tail(byte[] text, int i, int length) {
        for (int j = i + 1; j < i + length; j++) {
            if (j >= text.length || (text[j] & 0xc0) != 0x80) {
                return 0;
            }
        }
        return length;
    }
}
