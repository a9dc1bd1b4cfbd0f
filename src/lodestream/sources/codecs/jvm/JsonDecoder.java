package lodestream.codecs;

import java.io.Serializable;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** JSON bytes to a struct of the declared columns and, last, the reason why the row is broken. */
public final class JsonDecoder implements ScalarFunction, Serializable {
    private final StructType columns;
    private final int mostBytes;
    private final int mostItems;
    private final int mostDepth;
    private transient Field[] fields;

    public JsonDecoder(StructType columns, int mostBytes, int mostItems, int mostDepth) {
        this.columns = columns;
        this.mostBytes = mostBytes;
        this.mostItems = mostItems;
        this.mostDepth = mostDepth;
    }

    public DataType[] inputTypes() {
        return new DataType[] {DataTypes.BinaryType};
    }

    public DataType resultType() {
        return columns.add("_error", DataTypes.StringType);
    }

    public boolean isResultNullable() {
        return false;
    }

    /** Not true, but Spark would otherwise decode once more for each filter that it pushes below the decoding. */
    public boolean isDeterministic() {
        return false;
    }

    public String name() {
        return "lode_json";
    }

    public String canonicalName() {
        return "lodestream." + name();
    }

    public Object produceResult(InternalRow input) {
        if (fields == null) {
            fields = Field.columns(columns);
        }
        Object[] row = new Object[fields.length + 1];
        String reason = read(input.isNullAt(0) ? null : input.getBinary(0), row);
        if (reason != null) {
            row = new Object[fields.length + 1];
            row[fields.length] = UTF8String.fromString("json: " + reason);
        }
        return new GenericInternalRow(row);
    }

    private String read(byte[] text, Object[] row) {
        if (text == null) {
            return "no value (null, a tombstone)";
        }
        if (text.length == 0) {
            return "empty value";
        }
        if (text.length > mostBytes) {
            return String.format(java.util.Locale.ROOT, "%,d bytes, the limit is %,d", new Object[] {text.length, mostBytes});
        }
        int wrong = Utf8.firstInvalid(text);
        if (wrong >= 0) {
            return "not UTF-8 at byte " + wrong;
        }
        try {
            return new JsonReading(text, mostItems, mostDepth).row(fields, row);
        } catch (Broken broken) {
            return broken.getMessage();
        }
    }
}
