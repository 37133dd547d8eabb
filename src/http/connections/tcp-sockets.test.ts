import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { TcpSockets } from './tcp-sockets.ts'

/**
 * A socket with given ends. The kernel has two with the same ends only while the process has not
 * noticed that the first is closed, which a test cannot time.
 */
class SocketWithEnds extends Socket {
  override readonly remoteAddress = '192.0.2.1'
  override readonly remotePort: number
  override readonly localAddress = '192.0.2.2'
  override readonly localPort = 6443

  constructor(remotePort: number) {
    super()
    this.remotePort = remotePort
  }
}

async function close(socket: Socket): Promise<void> {
  socket.destroy()
  await once(socket, 'close')
}

describe('tcp sockets', () => {
  test('finds the socket with the same ends until it closes', async () => {
    const sockets = new TcpSockets()
    const [first, second] = [new SocketWithEnds(1), new SocketWithEnds(2)]
    sockets.add(first)
    sockets.add(second)
    assert.equal(sockets.below(new SocketWithEnds(1)), first)
    assert.equal(sockets.below(new SocketWithEnds(2)), second)
    await close(first)
    assert.equal(sockets.below(new SocketWithEnds(1)), undefined)
    assert.deepEqual([...sockets], [second])
  })

  test('finds none of two sockets with the same ends', async () => {
    const sockets = new TcpSockets()
    const [first, second] = [new SocketWithEnds(1), new SocketWithEnds(1)]
    sockets.add(first)
    sockets.add(second)
    assert.equal(sockets.below(new SocketWithEnds(1)), undefined)
    assert.equal(sockets.size, 2)
    await close(first)
    assert.equal(sockets.below(new SocketWithEnds(1)), undefined)
    await close(second)
    assert.equal(sockets.size, 0)
    const third = new SocketWithEnds(1)
    sockets.add(third)
    assert.equal(sockets.below(new SocketWithEnds(1)), third)
  })
})
