import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { isLoopbackAddress, peerOf } from './peer.ts'

for (const address of ['127.0.0.1', '127.255.3.9', '::1', '::ffff:127.0.0.1', '::ffff:127.9.9.9']) {
  test(`${address} is a loopback address`, () => {
    assert.ok(isLoopbackAddress(address))
  })
}

for (const address of [
  '',
  '10.0.0.1',
  '128.0.0.1',
  '1.127.0.0',
  '0127.0.0.1',
  '127.0.0.1.example.org',
  'x127.0.0.1',
  '127.1',
  '::',
  '::2',
  '::1:1',
  '::ffff:10.0.0.1',
  '::ffff:7f00:1',
  'fe80::1',
  'localhost',
]) {
  test(`'${address}' is not a loopback address`, () => {
    assert.ok(!isLoopbackAddress(address))
  })
}

test('the peer of a socket without an address is not local and has no certificate', () => {
  const peer = peerOf(new Socket())
  assert.equal(peer.address, '')
  assert.equal(peer.isLoopback, false)
  assert.equal(peer.clientCertificate(), undefined)
})

for (const [title, isAuthorized, isReused, expected] of [
  ['a peer has its verified certificate', true, false, { isVerified: true }],
  ['a peer has its unverified certificate, marked as such', false, false, { isVerified: false }],
  ['a peer of a resumed session has no verified certificate', true, true, undefined],
  ['a peer of a resumed session has no unverified certificate', false, true, undefined],
] as const) {
  test(title, () => {
    const issuer = {}
    const leaf = { issuerCertificate: issuer }
    const socket = new TLSSocket(new Socket())
    socket.authorized = isAuthorized
    Object.assign(socket, {
      isSessionReused: () => isReused,
      getPeerX509Certificate: () => leaf,
    })
    const peer = peerOf(socket)
    // The certificate stays available after the connection has closed.
    Object.assign(socket, { getPeerX509Certificate: () => assert.fail('read too late') })
    const certificate = peer.clientCertificate()
    assert.equal(certificate?.isVerified, expected?.isVerified)
    assert.equal(certificate?.leaf, expected && leaf)
    assert.deepEqual(certificate?.intermediates, expected && [issuer])
  })
}
