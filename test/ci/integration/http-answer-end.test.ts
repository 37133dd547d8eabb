import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Response, Sent } from '../../../src/http/exchange.ts'
import { eventually } from '../../support/eventually.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import { startListener, type TestListenerOptions, text } from '../../support/listener.ts'

for (const protocol of PROTOCOLS) {
  describe(`the end of a response over ${protocol}`, () => {
    /** Serves this response, lets a client use it, and returns the ends that were reported. */
    async function endsOf(
      answer: () => Response | Promise<Response>,
      use: (client: Awaited<ReturnType<typeof openClient>>) => Promise<unknown>,
      options: TestListenerOptions = {},
    ): Promise<readonly Sent[]> {
      const ends: Sent[] = []
      await using server = await startListener(
        async () => ({ ...(await answer()), onEnd: (sent) => ends.push(sent) }),
        options,
      )
      using client = await openClient(protocol, server.port)
      await use(client)
      await eventually('the end is reported', () => ends.length > 0)
      // A second report would come no later than the end of the connection.
      client[Symbol.dispose]()
      await server.listener.close()
      return ends
    }

    test('is reported once, when all has been sent', async () => {
      const ends = await endsOf(
        () => text(200, 'häuser'),
        (client) => client.request({ path: '/' }),
      )
      assert.deepEqual(ends, [{ status: 200, bytes: 7 }])
    })

    test('is reported with the bytes that were sent, after a stream', async () => {
      const body = async function* (): AsyncGenerator<Buffer> {
        yield Buffer.alloc(1000)
        yield Buffer.alloc(234)
      }
      const ends = await endsOf(
        () => ({ ...text(200, ''), body: body() }),
        (client) => client.request({ path: '/' }),
      )
      assert.deepEqual(ends, [{ status: 200, bytes: 1234 }])
    })

    test('the text of a stream is counted in bytes', async () => {
      const body = async function* (): AsyncGenerator<string> {
        yield 'häuser'
        yield '日本'
      }
      const ends = await endsOf(
        () => ({ ...text(200, ''), body: body() }),
        (client) => client.request({ path: '/' }),
      )
      assert.deepEqual(ends, [{ status: 200, bytes: 13 }])
    })

    test('is reported without a body, after a HEAD', async () => {
      const ends = await endsOf(
        () => text(200, 'unseen'),
        (client) => client.request({ path: '/', method: 'HEAD' }),
      )
      assert.deepEqual(ends, [{ status: 200, bytes: 0 }])
    })

    test('is reported when the client disconnects in the middle', async () => {
      const { promise: never } = Promise.withResolvers<void>()
      const body = async function* (): AsyncGenerator<string> {
        yield 'begun'
        await never
      }
      const ends = await endsOf(
        () => ({ ...text(200, ''), body: body(), longRunning: true }),
        async (client) => {
          const answer = await client.open({ path: '/' })
          await answer.read()
          answer.leave()
        },
      )
      assert.deepEqual(ends, [{ status: 200, bytes: 5 }])
    })

    test('is reported when the client disconnects before the response', async () => {
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      const ends = await endsOf(
        async () => {
          begin()
          await held
          return text(200, 'too late')
        },
        async (client) => {
          client.request({ path: '/' }).catch(() => {})
          await begun
          client[Symbol.dispose]()
          setTimeout(release, 50)
        },
      )
      assert.deepEqual(ends, [{ status: 0, bytes: 0 }])
    })

    test('is reported with the timeout response, when the handler is late', async () => {
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      const ends = await endsOf(
        async () => {
          await held
          return text(200, 'too late')
        },
        async (client) => {
          assert.equal((await client.request({ path: '/' })).status, 504)
          release()
        },
        { limits: { requestTimeoutMs: 50 } },
      )
      assert.deepEqual(ends, [{ status: 504, bytes: 8 }])
    })
  })
}
