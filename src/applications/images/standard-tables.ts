/**
 * The Huffman tables of the JPEG standard's annex K.3, which decoders use where a file has none, as cameras that write
 * single frames of Motion JPEG do. Each is 16 counts of codes by length, then the symbols.
 */
const dcLuminance = '00010501010101010100000000000000000102030405060708090a0b';
const dcChrominance = '00030101010101010101010000000000000102030405060708090a0b';
const acLuminance =
  '0002010303020403050504040000017d' +
  '01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a' +
  '434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9' +
  'aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa';
const acChrominance =
  '00020102040403040705040400010277' +
  '000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a3536373839' +
  '3a434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7' +
  'a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa';

/** By the kind (0 for DC, 1 for AC) times 16 and the slot. */
export const standardTables: ReadonlyMap<number, Buffer> = new Map(
  [
    [0x00, dcLuminance] as const,
    [0x01, dcChrominance] as const,
    [0x10, acLuminance] as const,
    [0x11, acChrominance] as const,
  ].map(([key, hex]) => [key, Buffer.from(hex, 'hex')]),
);
