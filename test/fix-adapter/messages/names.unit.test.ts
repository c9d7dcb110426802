import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fieldsText, fieldText, typeName, typeOf } from '../../../src/fix-adapter/messages/names.ts';

describe('the names of FIX for people', () => {
  it('a message type has its name, and an unknown one its own text', () => {
    const types = ['D', '8', 'AE', 'e', 'g', 'XX', ''];
    assert.deepEqual(types.map(typeName), [
      ...['NewOrderSingle', 'ExecutionReport', 'TradeCaptureReport', 'SecurityStatusRequest'],
      ...['TradingSessionStatusRequest', 'XX', ''],
    ]);
  });

  it('types and fields of the exchange’s own messages have their names too', () => {
    const types = 'AE AR B BE BF G e f g h'.split(' ').map(typeName);
    assert.deepEqual(types, [
      ...['TradeCaptureReport', 'TradeCaptureReportAck', 'News', 'UserRequest', 'UserResponse'],
      ...['OrderCancelReplaceRequest', 'SecurityStatusRequest', 'SecurityStatus'],
      ...['TradingSessionStatusRequest', 'TradingSessionStatus'],
    ]);
    const tags = [20, 43, 76, 97, 378, 380, 447, 448, 452, 453, 528, 581, 789, 880];
    assert.deepEqual(
      tags.map((tag) => fieldText(`${tag}=x`).slice(0, -2)),
      [
        ...[
          'ExecTransType',
          'PossDupFlag',
          'ExecBroker',
          'PossResend',
          'ExecRestatementReason',
          'BusinessRejectReason',
        ],
        ...['PartyIDSource', 'PartyID', 'PartyRole', 'NoPartyIDs', 'OrderCapacity', 'AccountType'],
        ...['NextExpectedMsgSeqNum', 'TrdMatchID'],
      ],
    );
  });

  it('a type is found by its text, which distinguishes cases, or by its name, which does not', () => {
    for (const [text, expected] of [
      ['D', 'D'],
      ['d', 'd'],
      ['AE', 'AE'],
      ['NewOrderSingle', 'D'],
      ['neworderSINGLE', 'D'],
      ['News', 'B'],
      ['logon', 'A'],
      ['nothing', undefined],
      ['', undefined],
      ['AEX', undefined],
      ['-', undefined],
    ] as const) {
      assert.equal(typeOf(text), expected, text);
    }
  });

  it('a field has the names of its tag and of its value, in quotes if that has a space', () => {
    for (const [field, expected] of [
      ['54=1', 'Side=buy'],
      ['54=2', 'Side=sell'],
      ['54=9', 'Side=9'],
      ['39=1', 'OrdStatus="partially filled"'],
      ['39=A', 'OrdStatus="pending new"'],
      ['150=F', 'ExecType=trade'],
      ['59=6', 'TimeInForce=GTD'],
      ['40=2', 'OrdType=limit'],
      ['43=Y', 'PossDupFlag=Y'],
      ['9999=x', '9999=x'],
      ['58=', 'Text='],
      ['58=a=b', 'Text=a=b'],
      ['58=a b', 'Text="a b"'],
      ['58=a\nb', 'Text=a\nb'],
      ['no field', 'no field'],
      ['=1', '=1'],
    ] as const) {
      assert.equal(fieldText(field), expected, field);
    }
  });

  it('a message has its fields in their order, without those that other columns show', () => {
    const text = '8=FIX.4.4|35=D|34=5|49=US|56=THEM|52=20260701-09:00:00|11=ord_1|54=1|9999=x|10=000';
    assert.equal(fieldsText(text), 'ClOrdID=ord_1 Side=buy 9999=x CheckSum=000');
    assert.equal(fieldsText('noise|54=2'), 'noise Side=sell');
    assert.equal(fieldsText('34=5'), '');
  });
});
