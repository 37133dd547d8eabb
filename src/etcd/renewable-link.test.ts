import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ConnectionState } from './connection.ts'
import { type OpenLink, RenewableLink } from './renewable-link.ts'
import type { Client } from './transport/client.ts'

class FakeLink {
  readonly client = {} as Client
  readonly isSilent = false
  readonly lastError = undefined
  state: ConnectionState = 'connecting'
  isClosed = false
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  enter(state: ConnectionState): void {
    this.state = state
    this.#onChange()
  }

  noteResponse(): void {}
  number = 1
  readonly lost = new AbortController().signal

  close(): void {
    this.isClosed = true
  }
}

function setUp(): { link: RenewableLink; opened: FakeLink[]; open: OpenLink } {
  const opened: FakeLink[] = []
  const open: OpenLink = (onChange) => {
    const fake = new FakeLink(onChange)
    opened.push(fake)
    return fake
  }
  return { link: new RenewableLink(open, () => {}), opened, open }
}

const at = (links: readonly FakeLink[], index: number): FakeLink => links[index] as FakeLink

describe('renewable link', () => {
  test('the old connection is used until the new one is ready, and closed after its calls', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { link, opened, open } = setUp()
    at(opened, 0).enter('ready')
    link.renew(open)
    assert.equal(link.client, at(opened, 0).client)
    at(opened, 1).enter('failing')
    assert.equal(link.client, at(opened, 0).client)
    at(opened, 1).enter('ready')
    assert.equal(link.client, at(opened, 1).client)
    t.mock.timers.tick(29_000)
    assert.equal(at(opened, 0).isClosed, false)
    t.mock.timers.tick(1_000)
    assert.equal(at(opened, 0).isClosed, true)
  })

  test('a connection is replaced at once when it is down or goes down', () => {
    const { link, opened, open } = setUp()
    link.renew(open)
    assert.equal(link.client, at(opened, 1).client)
    at(opened, 1).enter('ready')
    link.renew(open)
    at(opened, 1).enter('failing')
    assert.equal(link.client, at(opened, 2).client)
    link.close()
  })

  test('a second renewal replaces one that is not ready yet', () => {
    const { link, opened, open } = setUp()
    at(opened, 0).enter('ready')
    link.renew(open)
    link.renew(open)
    assert.equal(at(opened, 1).isClosed, true)
    at(opened, 2).enter('ready')
    assert.equal(link.client, at(opened, 2).client)
    link.close()
  })

  test('at most three old connections are kept, and none after close', () => {
    const { link, opened, open } = setUp()
    at(opened, 0).enter('ready')
    for (let round = 1; round <= 5; round++) {
      link.renew(open)
      at(opened, round).enter('ready')
    }
    assert.deepEqual(
      opened.map(({ isClosed }) => isClosed),
      [true, true, false, false, false, false],
    )
    link.close()
    assert.ok(opened.every(({ isClosed }) => isClosed))
  })
})
