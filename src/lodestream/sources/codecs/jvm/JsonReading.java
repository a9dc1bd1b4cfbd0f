package lodestream.codecs;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** One message being read into the declared fields. What does not fit is a reason; reading goes on to the next field. */
final class JsonReading extends Scalars {
    private static final int MOST_REASONS = 5;
    /** In place of a key that must not be shown. */
    private static final StringBuilder HIDDEN = new StringBuilder("hidden");

    private Object[] trail;
    private int steps;
    private StringBuilder reasons;
    private int reasonCount;

    JsonReading(byte[] text, int mostItems, int mostDepth) {
        super(text, mostItems, mostDepth);
        this.trail = new Object[4];
    }

    /** Every field's value into `row`; null when all of them fit, else the reasons. */
    String row(Field[] columns, Object[] row) {
        white();
        if (peek() != '{') {
            skip();
            white();
            throw at == end ? new Broken("not an object") : malformed();
        }
        object(columns, row);
        white();
        if (at != end) {
            throw malformed();
        }
        if (reasonCount > MOST_REASONS) {
            reasons.append("; and ").append(reasonCount - MOST_REASONS).append(" more");
        }
        return reasons == null ? null : reasons.toString();
    }

    private void object(Field[] fields, Object[] into) {
        boolean[] seen = new boolean[fields.length];
        String[] strangers = null;
        int expected = 0;
        open();
        if (peek() == '}') {
            close();
            return;
        }
        do {
            int place = name(fields, expected);
            if (place < 0 && place != NOWHERE) {
                strangers = strangers == null ? new String[fields.length] : strangers;
                strangers[-1 - place] = shorten(unescaped());
            }
            white();
            take(':');
            white();
            if (place < 0) {
                skip();
            } else {
                expected = place + 1;
                enter(fields[place].name);
                into[place] = once(fields[place], seen, place);
                steps--;
            }
        } while (more('}'));
        if (strangers != null) {
            reportStrangers(fields, seen, strangers);
        }
    }

    private Object once(Field field, boolean[] seen, int place) {
        if (seen[place]) {
            problem("is given twice");
            skip();
            return null;
        }
        seen[place] = true;
        return value(field);
    }

    private void reportStrangers(Field[] fields, boolean[] seen, String[] strangers) {
        for (int i = 0; i < fields.length; i++) {
            if (strangers[i] != null && !seen[i]) {
                enter(fields[i].name);
                problem("is spelt " + strangers[i] + " in the event");
                steps--;
            }
        }
    }

    private static final int NOWHERE = Integer.MIN_VALUE;

    /** Events mostly come in the declared order, so the next field's name is tried before any search. */
    private int name(Field[] fields, int expected) {
        if (expected < fields.length && fields[expected].plainName && quoted(fields[expected].names[0])) {
            return expected;
        }
        string();
        return find(fields);
    }

    /** The field that goes by the last string; -1 - place where only the case differs; NOWHERE for an unknown name. */
    private int find(Field[] fields) {
        byte[] bytes = text;
        int start = from;
        int stop = to;
        if (escaped) {
            bytes = unescaped();
            start = 0;
            stop = bytes.length;
        }
        for (int i = 0; i < fields.length; i++) {
            for (int j = 0; j < fields[i].names.length; j++) {
                if (same(fields[i].names[j], bytes, start, stop)) {
                    return i;
                }
            }
        }
        for (int i = 0; i < fields.length; i++) {
            for (int j = 0; j < fields[i].names.length; j++) {
                if (alike(fields[i].names[j], bytes, start, stop)) {
                    return fields[i].anyCase ? i : -1 - i;
                }
            }
        }
        return NOWHERE;
    }

    private static boolean same(byte[] name, byte[] bytes, int start, int stop) {
        return java.util.Arrays.equals(name, 0, name.length, bytes, start, stop);
    }

    private static boolean alike(byte[] name, byte[] bytes, int start, int stop) {
        if (name.length != stop - start) {
            return false;
        }
        for (int i = 0; i < name.length; i++) {
            if (lower(name[i]) != lower(bytes[start + i])) {
                return false;
            }
        }
        return true;
    }

    private static int lower(int letter) {
        return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
    }

    private Object value(Field field) {
        int start = at;
        int first = peek();
        if (first == 'n') {
            word("null");
            return null;
        }
        detail = null;
        Object found = null;
        if (first == '"') {
            string();
            found = fromString(field);
        } else if (first == '{' || first == '[') {
            return nested(field, first);
        } else if (first == '-' && at + 1 < end && text[at + 1] == 'I' || first == 'N' || first == 'I') {
            skip();
            found = fromNonFinite(field, first);
        } else if (first == 't' || first == 'f') {
            skip();
            found = field.kind == Field.BOOLEAN ? (Object) Boolean.valueOf(first == 't')
                : field.kind == Field.SCALAR_TEXT ? (Object) UTF8String.fromBytes(text, start, at - start) : null;
        } else {
            number();
            found = fromNumber(field);
        }
        if (found == null) {
            misfit(field, first == '"' ? shorten(unescaped()) : cut(new String(text, start, at - start, StandardCharsets.ISO_8859_1)));
        }
        return found;
    }

    private Object nested(Field field, int first) {
        if (first == '{' && field.kind == Field.STRUCT) {
            Object[] inside = new Object[field.members.length];
            object(field.members, inside);
            return new GenericInternalRow(inside);
        }
        if (first == '{' && field.kind == Field.MAP) {
            return map(field);
        }
        if (first == '[' && field.kind == Field.ARRAY) {
            return array(field);
        }
        skip();
        misfit(field, first == '{' ? "an object" : "an array");
        return null;
    }

    private Object array(Field field) {
        ArrayList found = new ArrayList();
        open();
        if (peek() == ']') {
            close();
            return new GenericArrayData(new Object[0]);
        }
        do {
            enter(Integer.valueOf(found.size()));
            found.add(value(field.element));
            steps--;
        } while (more(']'));
        return new GenericArrayData(found.toArray());
    }

    private Object map(Field field) {
        java.util.LinkedHashMap found = new java.util.LinkedHashMap();
        open();
        if (peek() == '}') {
            close();
        } else {
            do {
                string();
                byte[] bytes = unescaped();
                enter(field.hidden ? HIDDEN : bytes);
                if (loneSurrogate) {
                    problem("has a name that is not text");
                }
                white();
                take(':');
                white();
                Object key = UTF8String.fromBytes(bytes);
                if (found.containsKey(key)) {
                    problem("is given twice");
                    skip();
                } else {
                    found.put(key, value(field.element));
                }
                steps--;
            } while (more('}'));
        }
        return new ArrayBasedMapData(new GenericArrayData(found.keySet().toArray()), new GenericArrayData(found.values().toArray()));
    }

    private void enter(Object step) {
        if (steps == trail.length) {
            trail = java.util.Arrays.copyOf(trail, 2 * steps);
        }
        trail[steps++] = step;
    }

    private void misfit(Field field, String value) {
        String wanted = field.kind == Field.SCALAR_TEXT ? "a plain value" : field.described();
        value = field.hidden ? "a hidden value" : value;
        problem(detail == null ? "is " + value + ", not " + wanted : "is " + value + ", which " + detail + ": not " + wanted);
    }

    private void problem(String what) {
        if (++reasonCount > MOST_REASONS) {
            return;
        }
        reasons = reasons == null ? new StringBuilder() : reasons.append("; ");
        for (int i = 0; i < steps; i++) {
            Object step = trail[i];
            if (step instanceof String) {
                reasons.append(i > 0 ? "." : "").append((String) step);
            } else {
                reasons.append('[').append(step instanceof byte[] ? shorten((byte[]) step) : step.toString()).append(']');
            }
        }
        reasons.append(' ').append(what);
    }
}
