package lodestream.codecs;

import java.nio.charset.StandardCharsets;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A declared field: the names it goes by, its type as a small number, and what is inside it. */
final class Field {
    static final int BOOLEAN = 0, BYTE = 1, SHORT = 2, INT = 3, LONG = 4, FLOAT = 5, DOUBLE = 6, DECIMAL = 7;
    static final int STRING = 8, BINARY = 9, DATE = 10, INSTANT = 11, WALL_TIME = 12;
    static final int STRUCT = 13, ARRAY = 14, MAP = 15, SCALAR_TEXT = 16;

    final String name;
    final byte[][] names;
    /** The name stands in JSON as it is, without an escape. */
    final boolean plainName;
    final String type;
    final int kind;
    final boolean anyCase;
    final boolean nonFinite;
    /** Values of this field are not shown in reasons: the contract masks it. */
    final boolean hidden;
    /** Decimals with more places are rounded, from the digits that the event has. */
    final boolean halfUp;
    final int precision;
    final int scale;
    final Field[] members;
    final Field element;

    private Field(String name, String[] names, DataType type, boolean anyCase, boolean text, boolean nonFinite,
            boolean hidden, boolean halfUp) {
        this.name = name;
        this.names = new byte[names.length][];
        for (int i = 0; i < names.length; i++) {
            this.names[i] = names[i].getBytes(StandardCharsets.UTF_8);
        }
        this.plainName = !name.isEmpty() && isPlain(names[0]);
        this.type = type.catalogString();
        this.kind = text ? SCALAR_TEXT : kindOf(type);
        this.anyCase = anyCase;
        this.nonFinite = nonFinite;
        this.hidden = hidden;
        this.halfUp = halfUp;
        this.precision = type instanceof DecimalType ? ((DecimalType) type).precision() : 0;
        this.scale = type instanceof DecimalType ? ((DecimalType) type).scale() : 0;
        this.members = type instanceof StructType ? inside((StructType) type) : null;
        this.element = elementOf(type);
    }

    /** The columns of a row; what the event calls them and how they are read is in their metadata. */
    static Field[] columns(StructType type) {
        StructField[] fields = type.fields();
        Field[] found = new Field[fields.length];
        for (int i = 0; i < fields.length; i++) {
            Metadata told = fields[i].metadata();
            found[i] = new Field(fields[i].name(), told.getStringArray("sources"), fields[i].dataType(),
                told.getBoolean("any_case"), told.getBoolean("scalar_text"), told.getBoolean("non_finite"),
                told.getBoolean("hidden"), told.getBoolean("half_up"));
        }
        return found;
    }

    private Field[] inside(StructType type) {
        StructField[] fields = type.fields();
        Field[] found = new Field[fields.length];
        for (int i = 0; i < fields.length; i++) {
            String name = fields[i].name();
            found[i] = new Field(name, new String[] {name}, fields[i].dataType(), anyCase, false, nonFinite, hidden,
                halfUp);
        }
        return found;
    }

    private Field elementOf(DataType type) {
        if (type instanceof ArrayType) {
            return new Field("", new String[0], ((ArrayType) type).elementType(), anyCase, false, nonFinite, hidden,
                halfUp);
        }
        if (type instanceof MapType) {
            return new Field("", new String[0], ((MapType) type).valueType(), anyCase, false, nonFinite, hidden,
                halfUp);
        }
        return null;
    }

    /** As a reason says it: "an int", "a decimal(10,2)", "an object". */
    String described() {
        String word = kind == STRUCT || kind == MAP ? "object" : kind == ARRAY ? "array" : type;
        return ("aeio".indexOf(word.charAt(0)) >= 0 ? "an " : "a ") + word;
    }

    private static boolean isPlain(String name) {
        for (int i = 0; i < name.length(); i++) {
            char letter = name.charAt(i);
            if (letter < 0x20 || letter == '"' || letter == '\\') {
                return false;
            }
        }
        return true;
    }

    private static int kindOf(DataType type) {
        String[] words = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal",
            "string", "binary", "date", "timestamp", "timestamp_ntz", "struct", "array", "map"};
        String text = type.catalogString();
        for (int i = 0; i < words.length; i++) {
            if (text.equals(words[i]) || text.startsWith(words[i] + "(") || text.startsWith(words[i] + "<")) {
                return i;
            }
        }
        throw new IllegalArgumentException(text + " cannot be decoded from JSON");
    }
}
