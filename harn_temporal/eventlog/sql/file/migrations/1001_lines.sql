-- What the side file of the file backend knows of the lines.

-- `size` is where the next line goes; `seen` counts a torn last line as well.
CREATE TABLE line_files (
  topic TEXT NOT NULL PRIMARY KEY,
  size INTEGER NOT NULL,
  seen INTEGER NOT NULL
);

CREATE TABLE line_offsets (
  topic TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  PRIMARY KEY (topic, event_id)
) WITHOUT ROWID;

-- Committed, but maybe not written yet: whoever takes the lock next writes them.
CREATE TABLE lines_to_write (
  seq INTEGER NOT NULL PRIMARY KEY,
  topic TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  line BLOB NOT NULL
);

CREATE TABLE cursors_to_write (
  topic TEXT NOT NULL,
  consumer_id TEXT NOT NULL,
  PRIMARY KEY (topic, consumer_id)
);
