/**
 * The language of `labelSelector`: `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`,
 * `a>1`, `a<1`, joined by commas that mean "and". `in` and `notin` are also ordinary keys and values;
 * a value, also one in a list, may be missing and is then empty.
 */
import { type Int64, parseInt64 } from '../lib/go-integer.ts'
import { shown } from '../lib/shown.ts'
import { type FieldError, fieldErrorsText, invalidText } from './field-error.ts'
import { labelValueProblems, qualifiedNameProblems } from './names.ts'
import { badRequest, type StatusError } from './status.ts'

export type Labels = Readonly<Record<string, string>>

/** A choice among objects by their labels. */
export interface LabelSelector {
  /** Nothing is asked for. */
  readonly isEverything: boolean
  matches(labels: Labels): boolean
}

/** Far more than anybody asks for; each of them is looked at for each event. */
const requirementsMax = 1000
/** Of a list of values. The first few tell what is wrong. */
const errorsMax = 10

type Test = (labels: Labels) => boolean

/** Reads a selector; throws the 400 that says what was found and what could have been there. */
export function parseLabelSelector(text: string): LabelSelector {
  const tests = text === '' ? [] : new Parser(text).parse()
  return {
    isEverything: tests.length === 0,
    matches: (labels) => {
      for (const test of tests) if (!test(labels)) return false
      return true
    },
  }
}

interface Token {
  readonly kind: 'word' | 'symbol' | 'end'
  readonly text: string
}

const endToken: Token = { kind: 'end', text: '' }

class Parser {
  readonly #text: string
  readonly #pattern = /[ \t\r\n]*(?:([=!]=|[=!(),<>])|([^ \t\r\n=!(),<>]+))/y
  /** Read but not taken. */
  #next: Token

  constructor(text: string) {
    this.#text = text
    this.#next = this.#read()
  }

  parse(): readonly Test[] {
    const tests: Test[] = []
    if (this.#next.kind === 'end') return tests
    if (!this.#beginsRequirement()) {
      throw badRequest(`${found(this.#next)}, expected: !, identifier, or 'end of string'`)
    }
    for (;;) {
      if (tests.length === requirementsMax) {
        throw badRequest(`a label selector has at most ${requirementsMax} requirements`)
      }
      tests.push(this.#requirement())
      const separator = this.#take()
      if (separator.kind === 'end') return tests
      if (separator.text !== ',') {
        throw badRequest(`${found(separator)}, expected: ',' or 'end of string'`)
      }
      if (!this.#beginsRequirement()) {
        throw badRequest(`${found(this.#next)}, expected: identifier after ','`)
      }
    }
  }

  #requirement(): Test {
    const isNegated = this.#next.text === '!'
    if (isNegated) this.#take()
    const key = this.#word()
    const problems = qualifiedNameProblems(key)
    // No field is at fault, which the recorded server spells like this.
    if (problems.length > 0) throw unfit([invalidText('<nil>', key, problems.join('; '))])

    if (isNegated) return (labels) => labelOf(labels, key) === undefined
    if (this.#endsRequirement()) return (labels) => labelOf(labels, key) !== undefined
    const operator = this.#take()
    switch (operator.text) {
      case 'in':
      case 'notin':
        return listTest(key, this.#list(), operator.text === 'in')
      case '=':
      case '==':
      case '!=':
        return equalityTest(key, this.#value(), operator.text !== '!=')
      case '>':
      case '<':
        return orderTest(key, this.#value(), operator.text)
      default:
        throw unparsable(`${found(operator)}, expected: in, notin, =, ==, !=, gt, lt`)
    }
  }

  #value(): string {
    return this.#endsRequirement() ? '' : this.#word()
  }

  #word(): string {
    const token = this.#take()
    if (token.kind !== 'word') throw unparsable(`${found(token)}, expected: identifier`)
    return token.text
  }

  /** Sorted, each once. */
  #list(): readonly string[] {
    const open = this.#take()
    if (open.text !== '(') throw unparsable(`${found(open)} expected: '('`)
    if (this.#next.kind !== 'word' && !this.#endsListed()) {
      throw unparsable(`${found(this.#next)}, expected: ',', ')' or identifier`)
    }
    const values = new Set<string>()
    do values.add(this.#listed())
    while (this.#take().text === ',')
    return [...values].sort()
  }

  /** What is before the next comma or the end of the list. */
  #listed(): string {
    if (this.#endsListed()) return ''
    const token = this.#take()
    if (token.kind !== 'word') throw unparsable(`${found(token)}, expected: ',', or identifier`)
    if (!this.#endsListed()) throw unparsable(`${found(this.#next)}, expected: ',' or ')'`)
    return token.text
  }

  #beginsRequirement(): boolean {
    return this.#next.kind === 'word' || this.#next.text === '!'
  }

  #endsRequirement(): boolean {
    return this.#next.kind === 'end' || this.#next.text === ','
  }

  #endsListed(): boolean {
    return this.#next.text === ',' || this.#next.text === ')'
  }

  #take(): Token {
    const token = this.#next
    this.#next = this.#read()
    return token
  }

  #read(): Token {
    const match = this.#pattern.exec(this.#text)
    if (match === null) {
      this.#pattern.lastIndex = this.#text.length
      return endToken
    }
    const [, symbol, word = ''] = match
    return symbol === undefined ? { kind: 'word', text: word } : { kind: 'symbol', text: symbol }
  }
}

function listTest(key: string, values: readonly string[], isIn: boolean): Test {
  checkValues(key, values)
  const set = new Set<string | undefined>(values)
  return isIn
    ? (labels) => set.has(labelOf(labels, key))
    : (labels) => !set.has(labelOf(labels, key))
}

/** A missing label equals nothing. */
function equalityTest(key: string, value: string, isEqual: boolean): Test {
  checkValues(key, [value])
  return isEqual
    ? (labels) => labelOf(labels, key) === value
    : (labels) => labelOf(labels, key) !== value
}

function orderTest(key: string, value: string, operator: '>' | '<'): Test {
  const bound = parseInt64(value)
  if (bound === undefined) {
    const detail = "for 'Gt', 'Lt' operators, the value must be an integer"
    throw unfit([invalidText('values[0]', value, detail), ...valueErrors(key, [value])])
  }
  checkValues(key, [value])
  const isOrdered = (number: Int64) => (operator === '>' ? number > bound : number < bound)
  return (labels) => {
    const text = labelOf(labels, key)
    const number = text === undefined ? undefined : parseInt64(text)
    return number !== undefined && isOrdered(number)
  }
}

/** Keys come from strangers, but nothing that an object inherits is a string. */
function labelOf(labels: Labels, key: string): string | undefined {
  const value: unknown = labels[key]
  return typeof value === 'string' ? value : undefined
}

function checkValues(key: string, values: readonly string[]): void {
  const errors = valueErrors(key, values)
  if (errors.length > 0) throw unfit(errors)
}

function valueErrors(key: string, values: readonly string[]): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, value] of values.entries()) {
    const problems = labelValueProblems(value)
    if (problems.length === 0) continue
    errors.push(invalidText(`values[${index}][${key}]`, value, problems.join('; ')))
    if (errors.length === errorsMax) break
  }
  return errors
}

function found({ text }: Token): string {
  return `found '${shown(text)}'`
}

function unfit(errors: readonly FieldError[]): StatusError {
  return unparsable(fieldErrorsText(errors))
}

function unparsable(problem: string): StatusError {
  return badRequest(`unable to parse requirement: ${problem}`)
}
