import { InstrumentKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { Board } from '../../gen/marina/broker/v1/reference_pb.ts';

/** A stock that the exchange lists. */
export interface Listing {
  readonly symbol: string;
  readonly name: string;
  readonly kind: InstrumentKind;
  readonly board: Board;
  readonly previousCloseKobo: number;
}

const premium: ReadonlySet<string> = new Set('ACCESSCORP DANGCEM FBNH MTNN SEPLAT UBA WAPCO ZENITHBANK'.split(' '));

function equity(symbol: string, name: string, previousCloseKobo: number): Listing {
  const board = premium.has(symbol) ? Board.PREMIUM : Board.MAIN;
  return { symbol, name, kind: InstrumentKind.EQUITY, board, previousCloseKobo };
}

function fund(symbol: string, name: string, previousCloseKobo: number): Listing {
  return { symbol, name, kind: InstrumentKind.ETF, board: Board.ETF, previousCloseKobo };
}

/** Real symbols and names of the Nigerian Exchange. The prices are only plausible. */
export const listings: readonly Listing[] = [
  equity('ACCESSCORP', 'Access Holdings Plc', 2_410),
  equity('AIRTELAFRI', 'Airtel Africa Plc', 215_680),
  equity('ARADEL', 'Aradel Holdings Plc', 51_200),
  equity('BERGER', 'Berger Paints Plc', 2_200),
  equity('BETAGLAS', 'Beta Glass Plc', 18_450),
  equity('BUACEMENT', 'BUA Cement Plc', 9_300),
  equity('BUAFOODS', 'BUA Foods Plc', 41_800),
  equity('CADBURY', 'Cadbury Nigeria Plc', 3_160),
  equity('CAP', 'Chemical and Allied Products Plc', 4_500),
  equity('CONOIL', 'Conoil Plc', 24_200),
  equity('CORNERST', 'Cornerstone Insurance Plc', 361),
  equity('CUSTODIAN', 'Custodian Investment Plc', 2_075),
  equity('DANGCEM', 'Dangote Cement Plc', 43_900),
  equity('DANGSUGAR', 'Dangote Sugar Refinery Plc', 3_730),
  equity('ETERNA', 'Eterna Plc', 3_345),
  equity('ETI', 'Ecobank Transnational Incorporated', 2_895),
  equity('FBNH', 'FBN Holdings Plc', 2_680),
  equity('FCMB', 'FCMB Group Plc', 1_025),
  equity('FIDELITYBK', 'Fidelity Bank Plc', 1_895),
  equity('FIDSON', 'Fidson Healthcare Plc', 1_860),
  equity('FLOURMILL', 'Flour Mills of Nigeria Plc', 7_900),
  equity('GEREGU', 'Geregu Power Plc', 114_190),
  equity('GTCO', 'Guaranty Trust Holding Company Plc', 6_780),
  equity('GUINNESS', 'Guinness Nigeria Plc', 8_350),
  equity('HONYFLOUR', 'Honeywell Flour Mills Plc', 1_210),
  equity('INTBREW', 'International Breweries Plc', 835),
  equity('JAIZBANK', 'Jaiz Bank Plc', 309),
  equity('JBERGER', 'Julius Berger Nigeria Plc', 15_530),
  equity('WAPCO', 'Lafarge Africa Plc', 7_120),
  equity('LIVESTOCK', 'Livestock Feeds Plc', 865),
  equity('MANSARD', 'AXA Mansard Insurance Plc', 985),
  equity('MTNN', 'MTN Nigeria Communications Plc', 25_900),
  equity('NAHCO', 'Nigerian Aviation Handling Company Plc', 7_455),
  equity('NASCON', 'NASCON Allied Industries Plc', 4_590),
  equity('NB', 'Nigerian Breweries Plc', 4_915),
  equity('NEM', 'NEM Insurance Plc', 1_640),
  equity('NESTLE', 'Nestle Nigeria Plc', 146_000),
  equity('OANDO', 'Oando Plc', 4_870),
  equity('OKOMUOIL', 'The Okomu Oil Palm Company Plc', 61_500),
  equity('PRESCO', 'Presco Plc', 74_000),
  equity('PZ', 'PZ Cussons Nigeria Plc', 3_490),
  equity('SEPLAT', 'Seplat Energy Plc', 544_500),
  equity('SKYAVN', 'Skyway Aviation Handling Company Plc', 7_650),
  equity('STANBIC', 'Stanbic IBTC Holdings Plc', 7_950),
  equity('STERLINGNG', 'Sterling Financial Holdings Company Plc', 605),
  equity('TOTAL', 'TotalEnergies Marketing Nigeria Plc', 70_500),
  equity('TRANSCORP', 'Transnational Corporation Plc', 4_620),
  equity('TRANSCOHOT', 'Transcorp Hotels Plc', 11_530),
  equity('TRANSPOWER', 'Transcorp Power Plc', 35_980),
  equity('UACN', 'UAC of Nigeria Plc', 3_600),
  equity('UBA', 'United Bank for Africa Plc', 3_875),
  equity('UCAP', 'United Capital Plc', 1_745),
  equity('UNILEVER', 'Unilever Nigeria Plc', 5_240),
  equity('VITAFOAM', 'Vitafoam Nigeria Plc', 6_100),
  equity('WAPIC', 'Coronation Insurance Plc', 212),
  equity('WEMABANK', 'Wema Bank Plc', 1_530),
  equity('ZENITHBANK', 'Zenith Bank Plc', 5_285),
  fund('GREENWETF', 'Greenwich Alpha ETF', 58_000),
  fund('LOTUSHAL15', 'Lotus Halal Equity ETF', 6_280),
  fund('MERGROWTH', 'Meristem Growth ETF', 42_500),
  fund('MERVALUE', 'Meristem Value ETF', 18_950),
  fund('NEWGOLD', 'NewGold ETF', 4_090_000),
  fund('SIAMLETF40', 'SIAML Pension ETF 40', 72_400),
  fund('STANBICETF30', 'Stanbic IBTC ETF 30', 89_500),
  fund('VETBANK', 'VETIVA Banking ETF', 1_280),
  fund('VETGOODS', 'VETIVA Consumer Goods ETF', 2_615),
  fund('VETGRIF30', 'VETIVA Griffin 30 ETF', 5_135),
  fund('VETINDETF', 'VETIVA Industrial ETF', 6_045),
];

const bySymbol = new Map(listings.map((listing) => [listing.symbol, listing]));

/** The listing of a symbol, if it has one. */
export function listingOf(symbol: string): Listing | undefined {
  return bySymbol.get(symbol);
}
