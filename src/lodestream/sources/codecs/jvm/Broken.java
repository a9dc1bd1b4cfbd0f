package lodestream.codecs;

/** The whole value cannot be read. Without a stack trace: bad rows may be many, and the message says it all. */
final class Broken extends RuntimeException {
    Broken(String reason) {
        super(reason, null, false, false);
    }
}
