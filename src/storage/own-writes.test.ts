import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OwnWrites } from './own-writes.ts'
import { type PreparedValue, prepareValue, sealValue } from './stored-form.ts'

function bodyOf(note: string): Buffer {
  return Buffer.from(`{"metadata":{"name":"a"},"note":"${note}"}`)
}

function prepared(note: string): PreparedValue {
  return prepareValue(bodyOf(note), { metadata: { name: 'a' }, note })
}

describe('own writes', () => {
  test('a body with the same bytes under the same key is known, once', () => {
    const own = new OwnWrites()
    own.sending([{ key: 'k', value: prepared('one') }])
    assert.equal(own.take('other', bodyOf('one')), undefined)
    assert.equal(own.take('k', bodyOf('two')), undefined)
    assert.equal(own.take('k', bodyOf('one').subarray(0, -1)), undefined)
    assert.equal(own.take('k', bodyOf('one'))?.note, 'one')
    assert.equal(own.take('k', bodyOf('one')), undefined)
    assert.deepEqual([own.size, own.bytes], [0, 0])
  })

  test('a write that is sent again with another header is still known', () => {
    const own = new OwnWrites()
    const value = prepared('one')
    sealValue(value, 1, 0)
    own.sending([{ key: 'k', value }])
    own.failed({ key: 'k', value })
    assert.equal(own.take('k', bodyOf('one')), undefined)
    sealValue(value, 1_700_000_000_000, 99)
    own.sending([{ key: 'k', value }])
    assert.equal(own.take('k', bodyOf('one'))?.note, 'one')
  })

  test('knows the later of two writes of a key, even if the earlier one fails late', () => {
    const own = new OwnWrites()
    const [first, second] = [prepared('one'), prepared('two')]
    own.sending([{ key: 'k', value: first }])
    own.sending([{ key: 'k', value: second }])
    own.failed({ key: 'k', value: first })
    assert.equal(own.take('k', bodyOf('one')), undefined)
    assert.equal(own.take('k', bodyOf('two'))?.note, 'two')
  })

  test('deletes, and writes without their event, forget earlier writes of the key', () => {
    for (const value of [undefined, prepareValue(bodyOf('one'))]) {
      const own = new OwnWrites()
      own.sending([{ key: 'k', value: prepared('one') }])
      own.sending([{ key: 'k', value }])
      assert.deepEqual([own.size, own.bytes], [0, 0])
      assert.equal(own.take('k', bodyOf('one')), undefined)
    }
  })

  test('the oldest writes are dropped beyond a number, and beyond a size', () => {
    const few = new OwnWrites({ writesMax: 3, bytesMax: 1_000_000 })
    const small = new OwnWrites({ writesMax: 1_000, bytesMax: 1_000 })
    for (let n = 0; n < 100; n++) {
      few.sending([{ key: `k${n}`, value: prepared('one') }])
      small.sending([{ key: `k${n}`, value: prepared('x'.repeat(n)) }])
      assert.ok(few.size <= 3 && small.bytes <= 1_000)
    }
    assert.equal(few.take('k96', bodyOf('one')), undefined)
    assert.equal(few.take('k97', bodyOf('one'))?.note, 'one')
    assert.equal(small.take('k99', bodyOf('x'.repeat(99)))?.note.length, 99)
    small.sending([{ key: 'large', value: prepared('x'.repeat(2_000)) }])
    assert.deepEqual([small.size, small.bytes], [0, 0])
  })
})
