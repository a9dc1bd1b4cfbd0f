"""What the machine must offer: Java, jars, the Spark session, the embedded broker."""
