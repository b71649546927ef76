"""Invoices: read from CSV, grouped by customer, printed with totals."""

import csv
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass
class Line:
    product: str
    amount: int
    price: Decimal

    @property
    def total(self):
        return self.amount * self.price


@dataclass
class Invoice:
    number: str
    customer: str
    lines: list = field(default_factory=list)

    def add(self, line):
        if line.amount <= 0:
            raise ValueError(f'amount of {line.product} must be positive')
        self.lines.append(line)

    def total(self, rate=Decimal("0.19")):
        net = sum(line.total for line in self.lines)
        if net > 1000:
            discount = net * Decimal("0.02")
            net -= discount
        return (net * (1 + rate)).quantize(Decimal("0.01"))


class Reader:
    def __init__(self, path, encoding="utf-8"):
        self.path = path
        self.encoding = encoding
        self.skipped = 0

    def rows(self):
        with open(self.path, newline="", encoding=self.encoding) as file:
            for row in csv.DictReader(file):
                if not row.get("number"):
                    self.skipped += 1
                    continue
                yield row

    def invoices(self):
        found = {}
        for row in self.rows():
            number = row["number"]
            if number not in found:
                found[number] = Invoice(number, row["customer"])
            try:
                line = Line(row["product"], int(row["amount"]), Decimal(row["price"]))
                found[number].add(line)
            except ValueError as error:
                print(f"invoice {number}: {error}", file=sys.stderr)
                self.skipped += 1
        return list(found.values())


def by_customer(invoices):
    groups = defaultdict(list)
    for invoice in invoices:
        groups[invoice.customer].append(invoice)
    return groups


def report(invoices, out=sys.stdout):
    for customer, group in sorted(by_customer(invoices).items()):
        out.write(f"{customer}\n")
        for invoice in group:
            out.write(f"  {invoice.number:<10} {invoice.total():>12}\n")
        total = sum(invoice.total() for invoice in group)
        out.write(f"  {'total':<10} {total:>12}\n")


def main(arguments):
    if len(arguments) != 2:
        print("usage: invoices.py FILE", file=sys.stderr)
        return 2
    reader = Reader(arguments[1])
    invoices = reader.invoices()
    report(invoices)
    if reader.skipped:
        print(f"{reader.skipped} rows were skipped", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
