import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Http2Session } from 'node:http2'
import { describe, test } from 'node:test'
import { DEFAULT_LIMITS } from '../limits.ts'
import { Sessions } from './sessions.ts'

const { headersTimeoutMs, idleTimeoutMs, handshakeTimeoutMs } = DEFAULT_LIMITS
const { controlFramesPerTenSeconds, refusedStreamsMax } = DEFAULT_LIMITS

/** Records the calls it gets, in order. */
class FakeSession extends EventEmitter {
  readonly calls: string[] = []
  readonly state = { lastProcStreamID: 5 }
  destroyed = false

  setLocalWindowSize(size: number): void {
    this.calls.push(`window ${size}`)
  }

  goaway(code: number, lastStream?: number): void {
    if (this.destroyed) throw new Error('The session has been destroyed')
    this.calls.push(`goaway ${code} ${lastStream}`)
  }

  close(): void {
    this.calls.push('close')
  }

  destroy(_error?: Error, code?: number): void {
    this.calls.push(`destroy ${code}`)
  }
}

class Fixture {
  now = 1000
  readonly sessions: Sessions = new Sessions(DEFAULT_LIMITS, { now: () => this.now })

  add(): { fake: FakeSession; session: Http2Session } {
    const fake = new FakeSession()
    const session = fake as unknown as Http2Session
    const socket = { destroy: (): unknown => fake.calls.push('cut') }
    this.sessions.add(session, socket)
    fake.emit('localSettings')
    fake.calls.length = 0
    return { fake, session }
  }

  /** Advances the clock, with a sweep each second as in the listener. */
  advance(ms: number): void {
    const end = this.now + ms
    while (this.now < end) {
      this.now = Math.min(this.now + 1000, end)
      this.sessions.sweep()
    }
  }
}

describe('sessions', () => {
  test('a session whose client is just disconnecting does not stop the shutdown', () => {
    const fixture = new Fixture()
    const { fake } = fixture.add()
    const { fake: other } = fixture.add()
    fake.destroyed = true
    fixture.sessions.announceEnd()
    assert.deepEqual([fake.calls, other.calls], [[], ['goaway 0 5']])
  })

  test('a new session gets the connection window and is counted until it closes', () => {
    const fixture = new Fixture()
    const fake = new FakeSession()
    fixture.sessions.add(fake as unknown as Http2Session, { destroy: () => {} })
    assert.deepEqual(fake.calls, [`window ${DEFAULT_LIMITS.connectionWindowBytes}`])
    assert.equal(fixture.sessions.size, 1)
    fake.emit('close')
    assert.equal(fixture.sessions.size, 0)
  })

  test('a session without a request is closed at the headers timeout, then destroyed', () => {
    const fixture = new Fixture()
    const { fake } = fixture.add()
    fixture.advance(headersTimeoutMs - 1)
    assert.deepEqual(fake.calls, [])
    fixture.advance(1)
    assert.deepEqual(fake.calls, ['close'])
    fixture.advance(1000)
    assert.deepEqual(fake.calls, ['close', 'cut'])
  })

  test('a session that closes in time is not destroyed', () => {
    const fixture = new Fixture()
    const { fake } = fixture.add()
    fixture.advance(headersTimeoutMs)
    fake.emit('close')
    fixture.advance(10_000)
    assert.deepEqual(fake.calls, ['close'])
  })

  test('a session that had a request is closed at the idle timeout after its last request', () => {
    const fixture = new Fixture()
    const { fake, session } = fixture.add()
    fixture.sessions.streamOpened(session, 1)
    fixture.advance(10_000)
    fixture.sessions.streamClosed(session)
    fixture.advance(idleTimeoutMs - 1)
    assert.deepEqual(fake.calls, [])
    fixture.advance(1)
    assert.deepEqual(fake.calls, ['close'])
  })

  test('a session with a request in flight is never idle', () => {
    const fixture = new Fixture()
    const { fake, session } = fixture.add()
    fixture.sessions.streamOpened(session, 1)
    fixture.sessions.streamOpened(session, 1)
    fixture.sessions.streamClosed(session)
    fixture.advance(10 * idleTimeoutMs)
    assert.deepEqual(fake.calls, [])
  })

  for (const event of ['ping', 'remoteSettings']) {
    test(`too many ${event} events within ten seconds abort the session`, () => {
      const fixture = new Fixture()
      const { fake } = fixture.add()
      for (let n = 0; n < controlFramesPerTenSeconds; n += 1) fake.emit(event)
      assert.deepEqual(fake.calls, [])
      fake.emit(event)
      assert.deepEqual(fake.calls, ['destroy 11'])
      // The GOAWAY may not reach a client that reads nothing.
      fixture.advance(1000)
      assert.deepEqual(fake.calls, ['destroy 11', 'cut'])
    })
  }

  test('control frames below the limit are accepted without end', () => {
    const fixture = new Fixture()
    const { fake, session } = fixture.add()
    fixture.sessions.streamOpened(session, 1)
    for (let second = 0; second < 100; second += 1) {
      for (let n = 0; n < controlFramesPerTenSeconds / 10; n += 1) fake.emit('ping')
      fixture.advance(1000)
    }
    assert.deepEqual(fake.calls, [])
  })

  test('too many unseen streams abort the session, however rare the sweeps', () => {
    const fixture = new Fixture()
    const { fake, session } = fixture.add()
    fixture.sessions.streamOpened(session, 1)
    fake.state.lastProcStreamID = 2 * refusedStreamsMax + 1
    fixture.sessions.sweep()
    assert.deepEqual(fake.calls, [])
    fake.state.lastProcStreamID += 2
    fixture.sessions.sweep()
    assert.deepEqual(fake.calls, ['destroy 11'])
    fixture.advance(1000)
    assert.deepEqual(fake.calls, ['destroy 11', 'cut'])
  })

  test('occasional unseen streams are accepted without end', () => {
    const fixture = new Fixture()
    const { fake, session } = fixture.add()
    fixture.sessions.streamOpened(session, 1)
    for (let second = 0; second < 1000; second += 1) {
      fake.state.lastProcStreamID += 2 * Math.floor(refusedStreamsMax / 11)
      fixture.advance(1000)
    }
    assert.deepEqual(fake.calls, [])
  })

  test('streams refused after the GOAWAY do not abort the session', () => {
    const fixture = new Fixture()
    const { fake } = fixture.add()
    fixture.sessions.announceEnd()
    fake.calls.length = 0
    fake.state.lastProcStreamID = 10_001
    fixture.advance(1000)
    assert.deepEqual(fake.calls, [])
  })

  describe('sessions that have not acknowledged our settings', () => {
    function unsettled(fixture: Fixture): FakeSession {
      const fake = new FakeSession()
      const socket = { destroy: (): unknown => fake.calls.push('cut') }
      fixture.sessions.add(fake as unknown as Http2Session, socket)
      fake.calls.length = 0
      return fake
    }

    test('a session that does not acknowledge within the handshake timeout is aborted', () => {
      const fixture = new Fixture()
      const fake = unsettled(fixture)
      const other = unsettled(fixture)
      other.emit('localSettings')
      fixture.now += handshakeTimeoutMs - 1
      fixture.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, [])
      fixture.now += 1
      fixture.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, ['destroy 4'])
      fixture.advance(1000)
      assert.deepEqual(fake.calls, ['destroy 4', 'cut'])
      assert.deepEqual(other.calls, [])
    })

    test('a session with more than ten unseen streams is aborted at once', () => {
      const fixture = new Fixture()
      const fake = unsettled(fixture)
      fake.state.lastProcStreamID = 2 * 10 - 1
      fixture.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, [])
      fake.state.lastProcStreamID += 2
      fixture.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, ['destroy 11'])
    })

    test('a session that closes is not checked again', () => {
      const fixture = new Fixture()
      const fake = unsettled(fixture)
      fake.emit('close')
      fixture.now += handshakeTimeoutMs
      fixture.sessions.sweepUnsettled()
      assert.deepEqual(fake.calls, [])
    })
  })

  test('an error destroys only its own session', () => {
    const fixture = new Fixture()
    const one = fixture.add()
    const two = fixture.add()
    one.fake.emit('error', new Error('reset'))
    assert.deepEqual(one.fake.calls, ['destroy undefined'])
    assert.deepEqual(two.fake.calls, [])
  })

  test('every session gets a GOAWAY, then is closed', () => {
    const fixture = new Fixture()
    const { fake } = fixture.add()
    fixture.sessions.announceEnd()
    assert.deepEqual(fake.calls, ['goaway 0 5'])
    fixture.sessions.close()
    assert.deepEqual(fake.calls, ['goaway 0 5', 'close'])
  })

  test('a stream after the one that the GOAWAY named is not served', () => {
    const fixture = new Fixture()
    const { session } = fixture.add()
    assert.ok(fixture.sessions.streamOpened(session, 3))
    fixture.sessions.announceEnd()
    assert.ok(fixture.sessions.streamOpened(session, 5), 'sent before the GOAWAY arrived')
    assert.ok(!fixture.sessions.streamOpened(session, 7))
  })

  test('a session that starts after the GOAWAY is closed', () => {
    const fixture = new Fixture()
    fixture.sessions.announceEnd()
    const fake = new FakeSession()
    fixture.sessions.add(fake as unknown as Http2Session, { destroy: () => {} })
    assert.equal(fake.calls.at(-1), 'close')
  })
})
