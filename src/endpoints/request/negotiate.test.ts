import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../../api/status.ts'
import { makeRequest } from '../../gate/request.fixture.ts'
import type { Request } from '../../http/exchange.ts'
import {
  bodyMediaType,
  errorForm,
  negotiateDocument,
  negotiateList,
  negotiateObject,
  negotiateWatch,
  patchFormat,
} from './negotiate.ts'

const routerText =
  '406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf'
const acceptedText =
  'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf'
const streamText =
  'only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch'
const bodyText =
  'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const partialList = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'

function requestWith(headers: Record<string, string>, query = ''): Request {
  return makeRequest({ query: new URLSearchParams(query), headers })
}

function refusal(act: () => unknown): { code: number; message: string; details: unknown } {
  try {
    act()
  } catch (error) {
    assert.ok(error instanceof StatusError)
    return { code: error.code, message: error.message, details: error.details }
  }
  return assert.fail('the request was accepted')
}

describe('negotiateObject', () => {
  for (const [accept, mediaType] of [
    ['', 'application/json'],
    ['*/*', 'application/json'],
    ['*', 'application/json'],
    ['application/*', 'application/json'],
    ['application/json', 'application/json'],
    ['Application/JSON', 'application/json'],
    ['application/json, */*', 'application/json'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'application/json'],
    ['application/yaml', 'application/yaml'],
    ['application/json;q=0.5, application/yaml', 'application/yaml'],
    ['*/*, application/yaml', 'application/yaml'],
    ['application/*, application/yaml;q=0.1', 'application/json'],
    ['application/json;q=0, application/yaml;q=0.1', 'application/yaml'],
    ['application/yaml;q=often, application/json', 'application/yaml'],
    [
      'application/vnd.kubernetes.protobuf, application/json',
      'application/vnd.kubernetes.protobuf',
    ],
    ['application/json;stream=watch', 'application/json'],
    ['application/yaml;stream=watch, application/json', 'application/json'],
    ['application/json;sv=v1', 'application/json'],
    ['application/json;profile=x;export=1;__proto__=1', 'application/json'],
    [`${table.replace('v1', 'v2')}, application/yaml`, 'application/yaml'],
    ['application/yaml;as=Table;v=v1;g=meta.k8s.io', 'application/yaml'],
  ] as const) {
    it(`Accept: ${accept} gets ${mediaType}`, () => {
      assert.equal(negotiateObject(requestWith({ accept })).mediaType, mediaType)
    })
  }

  it('a request without an Accept header gets JSON', () => {
    assert.deepEqual(negotiateObject(requestWith({})), {
      mediaType: 'application/json',
      as: 'object',
      isPretty: false,
      metaVersion: 'v1',
      includeObject: 'Metadata',
    })
  })

  for (const accept of ['text/html', 'text/plain', 'application/cbor', 'application', 'text/*']) {
    it(`Accept: ${accept} is refused by its type`, () => {
      assert.deepEqual(
        refusal(() => negotiateObject(requestWith({ accept }))),
        {
          code: 406,
          message: routerText,
          details: {},
        },
      )
    })
  }

  for (const accept of [
    'application/json;as=Table;v=v9;g=meta.k8s.io',
    'application/json;as=Bogus;v=v1;g=meta.k8s.io',
    'application/json;as=Table;v=v1;g=other',
    'application/json;as=Table',
    'application/json;g=meta.k8s.io',
    'application/json;as=constructor;v=v1;g=meta.k8s.io',
    'application/json;stream=forever',
    'application/json;sv=v2',
    'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io',
  ]) {
    it(`Accept: ${accept} is refused by its parameters`, () => {
      assert.deepEqual(
        refusal(() => negotiateObject(requestWith({ accept }))),
        {
          code: 406,
          message: acceptedText,
          details: undefined,
        },
      )
    })
  }

  it('a table is available in two versions', () => {
    const { as, metaVersion } = negotiateObject(
      requestWith({ accept: `${table},application/json` }),
    )
    assert.deepEqual([as, metaVersion], ['table', 'v1'])
    const old = negotiateObject(requestWith({ accept: table.replace('v1', 'v1beta1') }))
    assert.deepEqual([old.as, old.metaVersion], ['table', 'v1beta1'])
  })

  it('an object is available as PartialObjectMetadata, not as a list of it', () => {
    assert.equal(negotiateObject(requestWith({ accept: partial })).as, 'partial')
    const { code, message } = refusal(() => negotiateObject(requestWith({ accept: partialList })))
    assert.equal(code, 406)
    assert.match(message, /is not a list/)
  })

  for (const [query, includeObject] of [
    ['', 'Metadata'],
    ['includeObject=', 'Metadata'],
    ['includeObject=Metadata', 'Metadata'],
    ['includeObject=Object', 'Object'],
    ['includeObject=None', 'None'],
  ] as const) {
    it(`rows of a table with ?${query} carry ${includeObject}`, () => {
      assert.equal(
        negotiateObject(requestWith({ accept: table }, query)).includeObject,
        includeObject,
      )
    })
  }

  it('another includeObject for the rows of a table is a 400', () => {
    const negotiated = () => negotiateObject(requestWith({ accept: table }, 'includeObject=Bad'))
    assert.deepEqual(refusal(negotiated), {
      code: 400,
      message: `Unable to convert to Table as requested: includeObject: Invalid value: "Bad": must be 'Metadata', 'Object', 'None', or empty`,
      details: undefined,
    })
    assert.equal(negotiateObject(requestWith({}, 'includeObject=Bad')).as, 'object')
  })

  for (const [headers, query, isPretty] of [
    [{}, '', false],
    [{}, 'pretty=true', true],
    [{}, 'pretty=1', true],
    [{}, 'pretty=T', true],
    [{}, 'pretty=bogus', false],
    [{}, 'pretty', false],
    [{ 'user-agent': 'Mozilla/5.0' }, '', true],
    [{ 'user-agent': 'curl/8.0' }, 'pretty', true],
    [{ 'user-agent': 'curl/8.0' }, 'pretty=false', false],
    [{ 'user-agent': 'my-controller/v1.2 (linux)' }, '', false],
    [{ accept: 'application/json;pretty=1' }, '', true],
    [{ accept: 'application/json;pretty=true' }, '', false],
  ] as const) {
    it(`${JSON.stringify(headers)} ?${query} is ${isPretty ? '' : 'not '}indented`, () => {
      assert.equal(negotiateObject(requestWith(headers, query)).isPretty, isPretty)
    })
  }
})

describe('negotiateList', () => {
  it('an error names the types of streams as well', () => {
    const { message } = refusal(() => negotiateList(requestWith({ accept: 'text/html' })))
    assert.equal(
      message,
      `${routerText}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch`,
    )
  })

  it('a list is available as PartialObjectMetadataList, not as PartialObjectMetadata', () => {
    assert.equal(negotiateList(requestWith({ accept: partialList })).as, 'partial')
    const { code, message } = refusal(() => negotiateList(requestWith({ accept: partial })))
    assert.equal(code, 406)
    assert.match(message, /is a list/)
  })
})

describe('negotiateWatch', () => {
  it('a watch is never indented', () => {
    assert.equal(
      negotiateWatch(requestWith({ 'user-agent': 'curl/8' }, 'pretty=1')).isPretty,
      false,
    )
  })

  it('a watch is available as tables and as partial objects', () => {
    assert.equal(negotiateWatch(requestWith({ accept: `${table},application/json` })).as, 'table')
    assert.equal(negotiateWatch(requestWith({ accept: partial })).as, 'partial')
    assert.equal(refusal(() => negotiateWatch(requestWith({ accept: partialList }))).code, 406)
  })

  it('refuses a watch in YAML, even if JSON is the second choice', () => {
    for (const accept of ['application/yaml', 'application/yaml, application/json']) {
      assert.equal(refusal(() => negotiateWatch(requestWith({ accept }))).message, streamText)
    }
  })
})

describe('negotiateDocument', () => {
  it('a document is not converted', () => {
    const form = { mediaType: 'application/json', isPretty: false }
    assert.deepEqual(negotiateDocument(requestWith({ accept: table })), form)
    assert.deepEqual(
      negotiateDocument(requestWith({ accept: partialList }, 'includeObject=Bad')),
      form,
    )
  })
})

describe('errorForm', () => {
  it('an error has the requested format', () => {
    assert.equal(
      errorForm(requestWith({ accept: 'application/yaml' })).mediaType,
      'application/yaml',
    )
    assert.deepEqual(errorForm(requestWith({ accept: `${table},application/json` })), {
      mediaType: 'application/json',
      isPretty: false,
    })
  })

  it('an error about the format is indented JSON', () => {
    const form = { mediaType: 'application/json', isPretty: true }
    assert.deepEqual(errorForm(requestWith({ accept: 'text/html' })), form)
    assert.deepEqual(errorForm(requestWith({ accept: 'application/json;as=Bogus' })), form)
  })
})

describe('arbitrary headers', () => {
  const headers = fc.array(
    fc.constantFrom(
      ...[
        'application/json',
        '*/*',
        '*',
        ',',
        ';',
        '=',
        '"',
        '\\',
        ' ',
        '/',
        'q',
        '0',
        'as',
        'Table',
      ],
      ...['g=meta.k8s.io', 'v=v1', 'stream=watch', 'pretty=1', '__proto__', 'text/plain', 'é'],
    ),
    { maxLength: 20 },
  )

  it('any header is accepted or refused with a StatusError, and errors always have a format', () => {
    fc.assert(
      fc.property(headers, (parts) => {
        const header = parts.join('')
        const request = requestWith({ accept: header, 'content-type': header })
        for (const read of [negotiateObject, negotiateList, negotiateWatch, bodyMediaType]) {
          try {
            read(request)
          } catch (error) {
            assert.ok(error instanceof StatusError)
          }
        }
        assert.match(errorForm(request).mediaType, /^application\/(json|yaml)$/)
      }),
    )
  })
})

describe('bodyMediaType', () => {
  for (const [type, format] of [
    ['', 'json'],
    ['application/json', 'json'],
    ['application/json; charset=utf-8', 'json'],
    ['application/json;charset="utf-8";', 'json'],
    ['APPLICATION/JSON', 'json'],
    ['application/yaml', 'yaml'],
  ] as const) {
    it(`Content-Type: ${type} is ${format}`, () => {
      assert.equal(bodyMediaType(requestWith({ 'content-type': type })), format)
    })
  }

  it('a body without a type is JSON', () => {
    assert.equal(bodyMediaType(requestWith({})), 'json')
  })

  for (const type of [
    'text/plain',
    'application/json;bad',
    'application/json;a="b',
    'application/x-www-form-urlencoded',
    'json',
  ]) {
    it(`Content-Type: ${type} is not supported`, () => {
      assert.deepEqual(
        refusal(() => bodyMediaType(requestWith({ 'content-type': type }))),
        {
          code: 415,
          message: bodyText,
          details: undefined,
        },
      )
    })
  }
})

describe('patchFormat', () => {
  for (const [type, format] of [
    ['application/json-patch+json', 'json'],
    ['application/merge-patch+json', 'merge'],
    ['application/strategic-merge-patch+json', 'strategic'],
    ['application/apply-patch+yaml; charset=utf-8', 'apply'],
  ] as const) {
    it(`Content-Type: ${type} is a patch`, () => {
      assert.equal(patchFormat(requestWith({ 'content-type': type })), format)
    })
  }

  for (const type of ['application/json', 'text/plain', '', 'application/apply-patch+json']) {
    it(`Content-Type: ${type} is not supported`, () => {
      assert.deepEqual(
        refusal(() => patchFormat(requestWith({ 'content-type': type }))),
        {
          code: 415,
          message: '415: Unsupported Media Type',
          details: {},
        },
      )
    })
  }
})
