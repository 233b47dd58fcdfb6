// Prints facts about keys, intervals and chords as tonal computes them: node theory.js FOLDER_OF_TONAL
const fs = require("fs");
const { Key, Interval, Chord } = eval(fs.readFileSync(process.argv[2] + "/browser/tonal.min.js", "utf8") + ";Tonal");
const majors = ["Cb", "Gb", "Db", "Ab", "Eb", "Bb", "F", "C", "G", "D", "A", "E", "B", "F#", "C#"];
const minors = majors.map((key) => Key.majorKey(key).minorRelative);
const intervals = ["2m", "2M", "3m", "3M", "4P", "4A", "5P", "6m", "6M", "7m", "7M", "8P", "9m", "9M", "10m", "10M"];
const roots = ["C", "D", "Eb", "E", "F", "G", "Ab", "A", "Bb", "B", "Db", "F#"];
const types = ["maj", "m", "dim", "aug", "7", "maj7", "m7"];
console.log(
  JSON.stringify({
    major: majors.map((key) => [key, Key.majorKey(key).minorRelative, Key.majorKey(key).alteration, Key.majorKey(key).scale]),
    minor: minors.map((key) => [key, Key.minorKey(key).alteration, Key.minorKey(key).natural.scale]),
    intervals: intervals.map((name) => [name, Interval.semitones(name)]),
    chords: roots.flatMap((root) => types.map((type) => [root, type, Chord.getChord(type, root).notes])),
  }),
);
