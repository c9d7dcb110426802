/**
 * Fields whose values the message log never has, by their tags, with their names. Fields of bytes (RawData, EncodedText and the
 * like) are never in it either.
 */
export const alwaysMasked: ReadonlyMap<number, string> = new Map([
  // Credentials.
  [89, 'Signature'],
  [91, 'SecureData'],
  [96, 'RawData'],
  [554, 'Password'],
  [925, 'NewPassword'],
  [1402, 'EncryptedPassword'],
  [1404, 'EncryptedNewPassword'],
  // Names, addresses, cards and other personal data.
  [109, 'ClientID'],
  [474, 'MailingDtls'],
  [482, 'MailingInst'],
  [486, 'DateOfBirth'],
  [488, 'CardHolderName'],
  [489, 'CardNumber'],
  [490, 'CardExpDate'],
  [491, 'CardIssNum'],
  [498, 'CashDistribAgentName'],
  [499, 'CashDistribAgentCode'],
  [500, 'CashDistribAgentAcctNumber'],
  [501, 'CashDistribPayRef'],
  [502, 'CashDistribAgentAcctName'],
  [503, 'CardStartDate'],
  [509, 'RegistDtls'],
  [511, 'RegistEmail'],
  // Further names of parties: a full legal name, an address, a tax number.
  [523, 'PartySubID'],
  [545, 'NestedPartySubID'],
  [760, 'Nested2PartySubID'],
  [785, 'SettlPartySubID'],
  [953, 'Nested3PartySubID'],
  [1121, 'RootPartySubID'],
]);

/** The tags of parties' ids, and the tag of the role that says whose id it is. Only a firm's id is shown. */
export const roleOf: ReadonlyMap<number, number> = new Map([
  [448, 452], // PartyID, PartyRole
  [524, 538], // NestedPartyID
  [757, 759], // Nested2PartyID
  [782, 784], // SettlPartyID
  [949, 951], // Nested3PartyID
  [1117, 1119], // RootPartyID
]);

/**
 * Roles of firms: executing firm 1, clearing firm 4, introducing firm 6, entering firm 7, order origination firm 13, giveup
 * clearing firm 14, correspondent clearing firm 15, executing system 16, contra firm 17, contra clearing firm 18, sponsoring
 * firm 19, clearing organization 21, exchange 22, custodian 28. All other roles may be a person's.
 */
export const firmRoles: ReadonlySet<string> = new Set([1, 4, 6, 7, 13, 14, 15, 16, 17, 18, 19, 21, 22, 28].map(String));
