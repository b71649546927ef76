<?php
   
declare(strict_types=1);

namespace Shop;   

final class Basket
{   
    /** @var array<string, int> */
    private array $items = [];
    private ?string $coupon = null;   

    public function __construct(private readonly Prices $prices)
    {   
    }

    public function add(string $article, int $count = 1): void   
    {
        if ($count < 1) {
            throw new \InvalidArgumentException("count of $article must be positive");   
        }
        $this->items[$article] = ($this->items[$article] ?? 0) + $count;
    }   

    public function drop(string $article): bool
    {   
        if (!isset($this->items[$article])) {
            return false;
        }   
        unset($this->items[$article]);
        return true;
    }   

    public function redeem(string $coupon): void
    {   
        if ($this->coupon !== null) {
            throw new \LogicException('only one coupon for each basket');
        }   
        $this->coupon = $coupon;
    }
   
    public function total(): int
    {
        $sum = 0;   
        foreach ($this->items as $article => $count) {
            $sum += $this->prices->of($article) * $count;
        }   
        if ($this->coupon === 'TENTH') {
            $sum = intdiv($sum * 9, 10);
        }   
        return $sum;
    }
   
    public function isEmpty(): bool
    {
        return $this->items === [];   
    }
}
   
final class Prices
{
    /** @param array<string, int> $cents */   
    public function __construct(private array $cents)
    {
    }   

    public function of(string $article): int
    {   
        if (!array_key_exists($article, $this->cents)) {
            throw new \OutOfBoundsException("there is no price for $article");
        }   
        return $this->cents[$article];
    }
   
    public function raise(float $percent): self
    {
        $raised = [];   
        foreach ($this->cents as $article => $price) {
            $raised[$article] = (int) round($price * (1 + $percent / 100));
        }   
        return new self($raised);
    }
}   
