package org.example.library;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Books, who has them, and until when. */
public final class Library {
    private static final int DAYS = 28;

    private final Map<String, Book> books = new HashMap<>();
    private final Map<String, Loan> loans = new HashMap<>();

    public record Book(String isbn, String title, String author, int year) {}

    public record Loan(Book book, String reader, LocalDate until) {
        boolean overdue(LocalDate today) {
            return until.isBefore(today);
        }
    }

    public static class UnknownBook extends RuntimeException {
        UnknownBook(String isbn) {
            super("there is no book " + isbn);
        }
    }

    public void add(Book book) {
        if (book.isbn().isBlank()) {
            throw new IllegalArgumentException("a book has a number");
        }
        books.put(book.isbn(), book);
    }

    public Loan lend(String isbn, String reader, LocalDate today) {
        Book book = books.get(isbn);
        if (book == null) {
            throw new UnknownBook(isbn);
        }
        Loan known = loans.get(isbn);
        if (known != null && !known.overdue(today)) {
            throw new IllegalStateException(book.title() + " is lent to " + known.reader());
        }
        Loan loan = new Loan(book, reader, today.plusDays(DAYS));
        loans.put(isbn, loan);
        return loan;
    }

    public boolean giveBack(String isbn) {
        return loans.remove(isbn) != null;
    }

    public Optional<Loan> loan(String isbn) {
        return Optional.ofNullable(loans.get(isbn));
    }

    public List<Loan> overdue(LocalDate today) {
        List<Loan> late = new ArrayList<>();
        for (Loan loan : loans.values()) {
            if (loan.overdue(today)) {
                late.add(loan);
            }
        }
        late.sort(Comparator.comparing(Loan::until));
        return late;
    }

    public List<Book> by(String author) {
        List<Book> found = new ArrayList<>();
        for (Book book : books.values()) {
            if (book.author().equalsIgnoreCase(author)) {
                found.add(book);
            }
        }
        found.sort(Comparator.comparingInt(Book::year).reversed());
        return found;
    }
}
