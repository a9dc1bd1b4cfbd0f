package lodestream.codecs;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Plain values of each type from the token just read; null, and maybe a detail, where the token does not fit. */
class Scalars extends Cursor {
    private static final int SHOWN = 40;
    private static final int MOST_DIGITS = 1000;

    /** Why the last token did not fit, where more can be said than its type. */
    String detail;

    Scalars(byte[] text, int mostItems, int mostDepth) {
        super(text, mostItems, mostDepth);
    }

    final Object fromString(Field field) {
        if (field.kind < Field.STRING) {
            return null;
        }
        if (!escaped && (field.kind == Field.STRING || field.kind == Field.SCALAR_TEXT)) {
            return UTF8String.fromBytes(text, from, to - from);
        }
        byte[] bytes = escaped ? unescaped() : text;
        int start = escaped ? 0 : from;
        int stop = escaped ? bytes.length : to;
        if (escaped && loneSurrogate) {
            return null;
        }
        switch (field.kind) {
            case Field.STRING: case Field.SCALAR_TEXT: return UTF8String.fromBytes(bytes);
            case Field.BINARY: return base64(bytes, start, stop);
            case Field.DATE: {
                long day = Moments.day(bytes, start, stop);
                return day == Moments.NONE ? null : (Object) Integer.valueOf((int) day);
            }
            case Field.INSTANT: return moment(Moments.moment(bytes, start, stop, true));
            case Field.WALL_TIME: return moment(Moments.moment(bytes, start, stop, false));
            default: return null;
        }
    }

    private Object moment(long found) {
        detail = found == Moments.ZONED ? "has a zone" : found == Moments.UNZONED ? "has no zone" : null;
        return found == Moments.NONE || detail != null ? null : (Object) Long.valueOf(found);
    }

    private static Object base64(byte[] bytes, int start, int stop) {
        if ((stop - start) % 4 != 0) {
            return null;
        }
        try {
            return Base64.getDecoder().decode(java.util.Arrays.copyOfRange(bytes, start, stop));
        } catch (IllegalArgumentException notBase64) {
            return null;
        }
    }

    final Object fromNonFinite(Field field, int first) {
        if (field.kind == Field.SCALAR_TEXT) {
            return UTF8String.fromString(first == 'N' ? "NaN" : first == 'I' ? "Infinity" : "-Infinity");
        }
        if (!field.nonFinite) {
            return null;
        }
        double found = first == 'N' ? Double.NaN : first == 'I' ? Double.POSITIVE_INFINITY : Double.NEGATIVE_INFINITY;
        return field.kind == Field.DOUBLE ? (Object) Double.valueOf(found) : field.kind == Field.FLOAT ? (Object) Float.valueOf((float) found) : null;
    }

    final Object fromNumber(Field field) {
        switch (field.kind) {
            case Field.DOUBLE: {
                double found = real();
                return Double.isInfinite(found) ? null : (Object) Double.valueOf(found);
            }
            case Field.FLOAT: {
                float found = (float) real();
                return Float.isInfinite(found) ? null : (Object) Float.valueOf(found);
            }
            case Field.DECIMAL: return decimal(field);
            case Field.SCALAR_TEXT: return UTF8String.fromBytes(text, from, to - from);
            default: return whole ? integer(field.kind) : null;
        }
    }

    private Object integer(int kind) {
        long found = negative ? -digits : digits;
        if (!complete || digits >= FULL) {
            if (kind != Field.LONG || to - from > 20) {
                return null;
            }
            try {
                found = Long.parseLong(ascii());
            } catch (NumberFormatException tooLong) {
                return null;
            }
        }
        switch (kind) {
            case Field.BYTE: return found == (byte) found ? (Object) Byte.valueOf((byte) found) : null;
            case Field.SHORT: return found == (short) found ? (Object) Short.valueOf((short) found) : null;
            case Field.INT: return found == (int) found ? (Object) Integer.valueOf((int) found) : null;
            case Field.LONG: return Long.valueOf(found);
            default: return null;
        }
    }

    private Object decimal(Field field) {
        if (to - from > MOST_DIGITS) {
            return null;
        }
        if (digits == 0 && complete) {
            return Decimal.apply(0L, field.precision, field.scale);
        }
        if (exponent > 100) {
            return null;
        }
        if (exponent < -2 * MOST_DIGITS) {
            if (field.halfUp) {
                return Decimal.apply(0L, field.precision, field.scale);
            }
            detail = "has more than " + field.scale + " decimal places";
            return null;
        }
        BigDecimal exact = new BigDecimal(ascii()).stripTrailingZeros();
        if (exact.precision() - exact.scale() > field.precision - field.scale) {
            return null;
        }
        if (field.halfUp) {
            exact = exact.setScale(field.scale, RoundingMode.HALF_UP);
            return exact.precision() > field.precision ? null : Decimal.apply(exact, field.precision, field.scale);
        }
        if (exact.scale() > field.scale) {
            detail = "has more than " + field.scale + " decimal places";
            return null;
        }
        return Decimal.apply(exact.setScale(field.scale), field.precision, field.scale);
    }

    static String shorten(byte[] bytes) {
        String text = new String(bytes, 0, Math.min(bytes.length, 8 * SHOWN), StandardCharsets.UTF_8);
        return "'" + cut(text) + "'";
    }

    static String cut(String text) {
        return text.codePointCount(0, text.length()) <= SHOWN ? text : text.substring(0, text.offsetByCodePoints(0, SHOWN)) + "\u2026";
    }
}
