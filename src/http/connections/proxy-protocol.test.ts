import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { readProxyHeader } from './proxy-protocol.ts'

const SIGNATURE = '0d0a0d0a000d0a515549540a'
const IPV4 = 'c0000201c6336402d431192b'
const IPV6 = `20010db8${'00'.repeat(11)}01${'00'.repeat(15)}01d431192b`

function version2(versionAndCommand: string, family: string, rest: string): Buffer {
  const length = (rest.length / 2).toString(16).padStart(4, '0')
  return Buffer.from(`${SIGNATURE}${versionAndCommand}${family}${length}${rest}`, 'hex')
}

const client = (address: string) => ({ kind: 'client', address })

describe('PROXY protocol', () => {
  const readable: readonly [string, Buffer, object][] = [
    ['TCP4', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 54321 6443\r\n'), client('192.0.2.1')],
    ['TCP6', Buffer.from('PROXY TCP6 2001:DB8:0::1 ::1 54321 6443\r\n'), client('2001:db8::1')],
    ['UNKNOWN', Buffer.from('PROXY UNKNOWN\r\n'), { kind: 'unknown' }],
    ['UNKNOWN with more words', Buffer.from('PROXY UNKNOWN a b c\r\n'), { kind: 'unknown' }],
    ['version 2, IPv4', version2('21', '11', IPV4), client('192.0.2.1')],
    ['version 2, IPv6', version2('21', '21', IPV6), client('2001:db8::1')],
    ['version 2, with fields', version2('21', '11', `${IPV4}0100026832`), client('192.0.2.1')],
    ['version 2, UNSPEC', version2('21', '00', ''), { kind: 'unknown' }],
    ['version 2, Unix socket', version2('21', '31', '00'.repeat(216)), { kind: 'unknown' }],
    ['version 2, LOCAL', version2('20', '00', ''), { kind: 'proxy' }],
    ['version 2, LOCAL with addresses', version2('20', '11', IPV4), { kind: 'proxy' }],
  ]
  for (const [name, header, caller] of readable) {
    test(`a header (${name}) is read, whatever follows it, and is incomplete if truncated`, () => {
      const complete = { kind: 'complete', bytes: header.length, caller }
      assert.deepEqual(readProxyHeader(header), complete)
      assert.deepEqual(readProxyHeader(Buffer.concat([header, Buffer.from('\x16\x03')])), complete)
      for (let length = 0; length < header.length; length++) {
        assert.deepEqual(readProxyHeader(header.subarray(0, length)), { kind: 'incomplete' })
      }
    })
  }

  const malformed: readonly [string, Buffer][] = [
    ['a TLS handshake', Buffer.from([0x16, 0x03, 0x01])],
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\n')],
    ['an unknown family', Buffer.from('PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n')],
    ['an address of the other family', Buffer.from('PROXY TCP4 ::1 ::1 1 2\r\n')],
    ['a name for an address', Buffer.from('PROXY TCP4 localhost 192.0.2.1 1 2\r\n')],
    ['an address with a zone', Buffer.from('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n')],
    ['a port out of range', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n')],
    ['a port with a leading zero', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n')],
    ['a missing port', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n')],
    ['double spaces', Buffer.from('PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n')],
    ['a line without an end', Buffer.from(`PROXY UNKNOWN ${'a'.repeat(100)}`)],
    ['a newline alone', Buffer.from(`PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n${'a'.repeat(100)}`)],
    ['version 1 in binary', version2('11', '11', IPV4)],
    ['an unknown command', version2('22', '11', IPV4)],
    ['UDP over IPv4', version2('21', '12', IPV4)],
    ['an unknown address family', version2('21', '41', IPV4)],
    ['too few bytes for IPv4', version2('21', '11', IPV4.slice(2))],
    ['too few bytes for IPv6', version2('21', '21', IPV6.slice(2))],
    ['too many fields', Buffer.from(`${SIGNATURE}21110801`, 'hex')],
  ]
  for (const [name, header] of malformed) {
    test(`${name} is malformed`, () => {
      assert.deepEqual(readProxyHeader(header), { kind: 'malformed' })
    })
  }

  test('the parser never throws and never waits for more than its limit', () => {
    const start = fc.constantFrom('', '50524f585920', SIGNATURE, `${SIGNATURE}2111`)
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 3000 }), (hex, rest) => {
        const reading = readProxyHeader(Buffer.concat([Buffer.from(hex, 'hex'), rest]))
        if (rest.length >= 2064) assert.notEqual(reading.kind, 'incomplete')
      }),
    )
  })
})
